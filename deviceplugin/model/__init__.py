"""What a node has and what happens to it, as plain values. Pure: no I/O, no clock, no gRPC.

``answers``    what the kubelet is shown and answered, before it is turned into gRPC messages
``holdings``   which container has which devices, as the kubelet lists it
``inventory``  what a node has, as its backends find it
``signals``    readings and signals: what backends report between two inventories
"""
