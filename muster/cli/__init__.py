"""The command line: `muster …`."""
