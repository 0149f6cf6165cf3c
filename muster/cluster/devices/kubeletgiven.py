"""What the kubelets gave to pods, by node: the facts of ``muster.dev/node-allocations``.

Stored by UID, not by pod row: a node may list a pod before its binding is seen, after the pod is
gone, or one that is not known at all. Entries count only for pods that are on the node.
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
    """Given devices by node row; nodes that list nothing share one entry. ``uid``: of a pod row."""

    __slots__ = ("_lists_any", "_nodes", "_uid")

    def __init__(
        self, uid: Callable[[int], bytes], like: PagedListView[Given | None] | None = None
    ) -> None:
        self._uid = uid
        self._nodes: PagedList[Given | None] = PagedList(None, like=like)
        self._lists_any: NDArray[np.bool_] | None = None  # by node row; ``those`` makes it

    def grow(self, count: int) -> None:
        """Make room for ``count`` node rows."""
        self._nodes.grow(count)
        self._lists_any = None

    def any(self, node: int) -> bool:
        """Return whether a node lists anything."""
        return self._nodes[node] is not None

    def to(self, pod: int, node: int) -> tuple[str, ...] | None:
        """Return what a pod was given on a node, ``None`` where that is not known."""
        given = self._nodes[node]
        return None if given is None else given.get(self._uid(pod).hex())

    def those(self, uids: Uids, nodes: NDArray[np.intp]) -> list[int]:
        """Return the indices of the pods that were given something on their nodes."""
        if self._lists_any is None:
            self._lists_any = np.zeros(self._nodes.capacity, dtype=np.bool_)
            listing = [node for node, listed in self._nodes.items() if listed is not None]
            self._lists_any[listing] = True
        found = list[int]()
        for place in np.flatnonzero(self._lists_any[nodes]).tolist():
            listed = self._nodes[int(nodes[place])]
            if listed is not None and uids[place].hex() in listed:
                found.append(place)
        return found

    def differs(self, node: int, listed: Mapping[PodUid, tuple[str, ...]] | None) -> bool:
        """Return whether ``listed`` differs from what is stored; ``None``: unchanged."""
        known = self._nodes[node]
        if not listed or known is None:
            return listed is not None and bool(listed) is not bool(known)
        return known != _by_hex(listed)

    def put(self, node: int, listed: Mapping[PodUid, tuple[str, ...]]) -> None:
        """Replace what a node lists."""
        self._nodes[node] = given = _by_hex(listed) or None
        if self._lists_any is not None:
            self._lists_any[node] = given is not None

    def freeze(self, count: int) -> PagedListView[Given | None]:
        """Return everything read-only."""
        return self._nodes.freeze(count)

    def restore(self, given: Iterable[Given | None]) -> None:
        """Restore what ``dump`` wrote; there must be room already."""
        for node, listed in enumerate(given):
            if listed:
                self._nodes[node] = listed
        self._lists_any = None


def _by_hex(listed: Mapping[PodUid, tuple[str, ...]]) -> Given:
    return {uid.hex(): names for uid, names in listed.items()}
