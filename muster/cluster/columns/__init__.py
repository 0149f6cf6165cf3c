"""Columns, names and ids: how the model stores a million rows."""
