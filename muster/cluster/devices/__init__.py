"""Devices of nodes: what there is, what is used, who has it."""
