"""The command line: one file per command, each parses, calls one task and writes one stream."""
