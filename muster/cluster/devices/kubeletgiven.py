"""What the kubelets gave to whom, by node: the facts of ``muster.dev/node-allocations``.

Kept by UID, not by pod row: a node may tell of a pod before its binding is seen, after the pod
has gone, or of one that nobody knows. What is told counts for the pods that are there.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.paged import PagedList, PagedListView
from muster.cluster.columns.uids import Uids
from muster.cluster.ids import PodUid

Given: TypeAlias = Mapping[str, tuple[str, ...]]
"""Pod UID in hex (dumps are JSON) → names of devices, as in a plan."""


class GivenTable:
    """By node row; nodes that tell nothing cost one shared entry. ``uid``: of a pod row."""

    __slots__ = ("_nodes", "_tells", "_uid")

    def __init__(
        self, uid: Callable[[int], bytes], like: PagedListView[Given | None] | None = None
    ) -> None:
        self._uid = uid
        self._nodes: PagedList[Given | None] = PagedList(None, like=like)
        self._tells: NDArray[np.bool_] | None = None  # by node row, once somebody asks for many

    def grow(self, count: int) -> None:
        """Make room for ``count`` node rows."""
        self._nodes.grow(count)
        self._tells = None

    def any(self, node: int) -> bool:
        """Return whether a node tells anything."""
        return self._nodes[node] is not None

    def to(self, pod: int, node: int) -> tuple[str, ...] | None:
        """Return what a pod was given on a node, ``None`` where that is not known."""
        given = self._nodes[node]
        return None if given is None else given.get(self._uid(pod).hex())

    def those(self, uids: Uids, nodes: NDArray[np.intp]) -> list[int]:
        """Return the places of the pods that were given something on their nodes."""
        if self._tells is None:
            self._tells = np.zeros(self._nodes.capacity, dtype=np.bool_)
            self._tells[[node for node, told in self._nodes.items() if told is not None]] = True
        found = list[int]()
        for place in np.flatnonzero(self._tells[nodes]).tolist():
            told = self._nodes[int(nodes[place])]
            if told is not None and uids[place].hex() in told:
                found.append(place)
        return found

    def differs(self, node: int, told: Mapping[PodUid, tuple[str, ...]] | None) -> bool:
        """Return whether a node says anything new; ``None``: it is as it was."""
        known = self._nodes[node]
        if not told or known is None:
            return told is not None and bool(told) is not bool(known)
        return known != _by_hex(told)

    def put(self, node: int, told: Mapping[PodUid, tuple[str, ...]]) -> None:
        """Replace what a node says."""
        self._nodes[node] = given = _by_hex(told) or None
        if self._tells is not None:
            self._tells[node] = given is not None

    def freeze(self, count: int) -> PagedListView[Given | None]:
        """Return everything read-only."""
        return self._nodes.freeze(count)

    def restore(self, given: Iterable[Given | None]) -> None:
        """Take over what ``dump`` wrote; there must be room already."""
        for node, told in enumerate(given):
            if told:
                self._nodes[node] = told
        self._tells = None


def _by_hex(told: Mapping[PodUid, tuple[str, ...]]) -> Given:
    return {uid.hex(): names for uid, names in told.items()}
