"""CDI specs: what a container runtime does for each device's name.

``specs``   the node's CDI specs: what a container runtime does for ``nvidia.com/gpu=GPU-…``
``writer``  CDI specs on disk
"""
