"""Karmada's override policies."""
