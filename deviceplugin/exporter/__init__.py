"""Metrics of the node's devices in DCGM's names, and the plugin's own, over HTTP."""
