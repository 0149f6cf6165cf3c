"""The HTTP server: bodies, budgets, deadlines and callers."""
