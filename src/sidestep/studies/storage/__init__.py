"""The record and its storage: a chain of events, in memory, in a file or on a server."""
