"""Injection into objects that make pods."""
