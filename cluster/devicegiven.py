"""What the kubelets gave to whom, by node: the facts of ``muster.dev/node-allocations``.

Kept by UID, not by pod row: a node may tell of a pod before its binding is seen, after the pod
has gone, or of one that nobody knows. What is told counts for the pods that are there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from cluster.ids import PodUid
from cluster.pagedlists import PagedList, PagedListView

Given: TypeAlias = Mapping[str, tuple[str, ...]]
"""Pod UID in hex (dumps are JSON) → names of devices, as in a plan."""


class GivenTable:
    """By node row; nodes that tell nothing cost one shared entry. ``uid``: of a pod row."""

    __slots__ = ("_nodes", "_uid")

    def __init__(
        self, uid: Callable[[int], bytes], like: PagedListView[Given | None] | None = None
    ) -> None:
        self._uid = uid
        self._nodes: PagedList[Given | None] = PagedList(None, like=like)

    def grow(self, count: int) -> None:
        """Make room for ``count`` node rows."""
        self._nodes.grow(count)

    def any(self, node: int) -> bool:
        """Tell whether a node tells anything."""
        return self._nodes[node] is not None

    def to(self, pod: int, node: int) -> tuple[str, ...] | None:
        """Return what a pod was given on a node, ``None`` where that is not known."""
        given = self._nodes[node]
        return None if given is None else given.get(self._uid(pod).hex())

    def those(self, uids: Sequence[PodUid], nodes: Sequence[int]) -> list[int]:
        """Return the places of the pods that were given something on their nodes."""
        given = enumerate(self._nodes.those(nodes))
        known = ((place, told) for place, told in given if told is not None)
        return [place for place, told in known if uids[place].hex() in told]

    def differs(self, node: int, told: Mapping[PodUid, tuple[str, ...]] | None) -> bool:
        """Tell whether a node says anything new; ``None``: it is as it was."""
        known = self._nodes[node]
        if not told or known is None:
            return told is not None and bool(told) is not bool(known)
        return known != _by_hex(told)

    def put(self, node: int, told: Mapping[PodUid, tuple[str, ...]]) -> None:
        """Replace what a node says."""
        self._nodes[node] = _by_hex(told) or None

    def freeze(self, count: int) -> PagedListView[Given | None]:
        """Return everything read-only."""
        return self._nodes.freeze(count)

    def restore(self, given: Iterable[Given | None]) -> None:
        """Take over what ``dump`` wrote; there must be room already."""
        for node, told in enumerate(given):
            if told:
                self._nodes[node] = told


def _by_hex(told: Mapping[PodUid, tuple[str, ...]]) -> Given:
    return {uid.hex(): names for uid, names in told.items()}
