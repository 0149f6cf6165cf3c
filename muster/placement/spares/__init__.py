"""Spare nodes of a plan, and hot spares of a gang."""
