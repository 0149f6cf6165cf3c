"""Kinds of other API groups that Muster reads or writes."""
