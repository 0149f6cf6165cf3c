"""One load test from its settings to its verdict."""
