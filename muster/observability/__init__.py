"""Logs, metrics and health checks, shared by the shells. The core never imports this."""
