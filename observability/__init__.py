"""Logging, metrics and health endpoints shared by the shells."""
