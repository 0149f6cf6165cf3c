"""Small topology trees for searches on arrays."""

from collections.abc import Sequence

import numpy as np

from muster.placement.tree import DomainTree


def tree(*racks_per_block: Sequence[int]) -> DomainTree:
    """Blocks of racks of hosts: ``tree([2, 1], [3])`` has two blocks, three racks, six hosts."""
    blocks, racks, position = [], [], 0
    for block in racks_per_block:
        blocks.append(position)
        for hosts in block:
            racks.append(position)
            position += hosts
    starts = tuple(np.array(s, dtype=np.int64) for s in (blocks, racks, range(position)))
    along = tuple(
        np.searchsorted(s, np.arange(position), side="right").astype(np.int32) - 1 for s in starts
    )
    return DomainTree(
        starts, tuple(np.ones(len(s), dtype=np.bool_) for s in starts), along, position
    )
