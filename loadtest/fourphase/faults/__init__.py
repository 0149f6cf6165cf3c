"""Faults that a load test makes, and what they leave behind.

``aftermath``  what followed each fault, as figures and as rows of a table
``faults``     faults carried out
"""
