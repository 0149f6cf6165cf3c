"""Commands that ask a running extender."""
