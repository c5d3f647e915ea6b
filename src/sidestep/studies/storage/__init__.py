"""The record and where it is kept: events in a chain, in memory, in a file, on a server."""
