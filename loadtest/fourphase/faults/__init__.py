"""Faults that a load test makes, and what they leave behind."""
