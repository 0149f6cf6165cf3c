"""Commands for a person on the node; no part of the running device plugin."""
