"""How many pods of a class a node can take: the smallest quotient over its requests."""

from collections.abc import Callable

import numpy as np

from cluster.constraints import PodClass
from placement.labels import Mask
from placement.world import Ints


def capacity(
    free: Callable[[str], Ints], pod_class: PodClass, mask: Mask, limit: int
) -> Ints:
    """Return int64[n]: how many pods fit on each node of ``mask``, at most ``limit``.

    ``free`` returns what is free of a resource per node; a request of zero asks nothing.
    Limiting at the number of pods to place keeps sums small and loses nothing.
    """
    room = np.where(mask, limit, 0).astype(np.int64)
    for resource, amount in pod_class.requests:
        if amount:
            np.minimum(room, free(resource) // amount, out=room)
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
