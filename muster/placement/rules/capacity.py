"""How many pods of a class a node can take: the smallest quotient over its requests."""

from collections.abc import Callable
from typing import Final

import numpy as np

from muster.cluster.resumable import FEW, Steps, run
from muster.cluster.specs.podconstraints import PodClass
from muster.placement.nodelabels import Mask
from muster.placement.tree import Ints

UNLIMITED: Final = 1 << 20
"""Pods on a node whose resources set no limit; more than any kubelet runs, and small enough
for sums over a million nodes."""


def capacity(
    free: Callable[[str], Ints],
    pod_class: PodClass,
    mask: Mask,
    devices: Ints | None = None,
) -> Ints:
    """Return int64[n]: how many pods fit on each node of ``mask``.

    ``free`` returns what is free of a resource per node; a request of zero asks nothing.
    ``devices``: int64[n], pods that the devices of a node have room for, ``None``: no limit.
    """
    return run(capacity_steps(free, pod_class, mask, devices))


def capacity_steps(
    free: Callable[[str], Ints],
    pod_class: PodClass,
    mask: Mask,
    devices: Ints | None = None,
) -> Steps[Ints]:
    """As ``capacity``; with many nodes a slice per resource."""
    room: Ints = np.multiply(mask, UNLIMITED, dtype=np.int64)
    each = np.empty_like(room)  # one buffer: fresh pages cost more than the division
    for resource, amount in pod_class.requests:
        if amount:
            np.floor_divide(free(resource), amount, out=each)
            np.minimum(room, each, out=room)
            if len(room) > FEW:
                yield
    if devices is not None:
        np.minimum(room, devices, out=room)
    return np.maximum(room, 0, out=room)


def by_resource(
    free: Callable[[str], Ints], pod_class: PodClass, mask: Mask
) -> list[tuple[str, int, Ints]]:
    """Return (resource, request, int64[n] pods that this resource alone leaves room for)."""
    return [
        (resource, amount, np.where(mask, np.maximum(free(resource) // amount, 0), 0))
        for resource, amount in pod_class.requests
        if amount
    ]
