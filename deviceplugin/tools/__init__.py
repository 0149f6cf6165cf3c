"""Commands for a person on the node; no part of the running device plugin.

``faultswitch``  switches faults of a simulated machine on and off
``nvmlreport``   ``muster device-plugin look``: what NVML finds on this machine
"""
