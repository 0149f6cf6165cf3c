"""One bench per file, each run by `muster bench NAME`."""
