"""The bench: parse, call, print."""
