"""Muster, its replicas and kwok, started beside a control plane.

``kwok``      kwok as the kubelet of every node: it renews their Leases and carries their pods along
``muster``    Muster on a control plane
``replicas``  several replicas of the extender beside one control plane
"""
