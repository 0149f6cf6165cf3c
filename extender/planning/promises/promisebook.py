"""The promises of one cluster.

One for each tree of queues. Further gangs of a tree have one only for the seconds in which others
give way to them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from muster.cluster.ids import GangKey
from muster.cluster.quota.queuespec import QueueName
from muster.placement.question import Question
from muster.queueing.backfill.promise import Promise, StartClaim


@dataclass(frozen=True, slots=True)
class PromiseBasis:
    """What a promise was computed from."""

    #: What was asked.
    question: Question
    #: The gangs that it waits for and that gave way then.
    counted_on: tuple[GangKey, ...] = ()


class PromiseBook:
    """Iterable: every promise, of each tree the one that was given first first."""

    def __init__(self) -> None:
        """Begin without any."""
        self._by_root: dict[QueueName | None, Promise] = {}
        #: those of further gangs of a tree
        self._further: dict[GangKey, Promise] = {}
        #: what the promise of each gang was computed from
        self._bases: dict[GangKey, PromiseBasis] = {}

    def __iter__(self) -> Iterator[Promise]:
        """Yield every promise."""
        return iter([*self._by_root.values(), *self._further.values()])

    def __len__(self) -> int:
        """Return the number of promises."""
        return len(self._by_root) + len(self._further)

    def of(self, key: GangKey) -> Promise | None:
        """Return a gang's promise, ``None``: it has none."""
        return next((one for one in self if one.gang == key), None)

    def first(self, root: QueueName | None) -> Promise | None:
        """Return the promise of a tree, ``None``: nobody there has it."""
        return self._by_root.get(root)

    def basis(self, key: GangKey) -> PromiseBasis:
        """Return what a gang's promise was computed from. ``KeyError``: it has none."""
        return self._bases[key]

    def put(self, promise: Promise, basis: PromiseBasis) -> None:
        """Give a promise. One of its tree that it outranks is taken back."""
        self._bases[promise.gang] = basis
        if self.is_further(promise.claim):
            self._further[promise.gang] = promise
            return
        self._further.pop(promise.gang, None)
        outranked = self.first(promise.claim.root)
        if outranked is not None and outranked.gang != promise.gang:
            self.drop(outranked.gang)
        self._by_root[promise.claim.root] = promise

    def move(self, moved: Iterable[Promise]) -> None:
        """Put promises in the places of the same gangs' former ones."""
        for promise in moved:
            if promise.gang in self._further:
                self._further[promise.gang] = promise
            else:
                self._by_root[promise.claim.root] = promise

    def drop(self, key: GangKey) -> Promise | None:
        """Forget a gang's promise; returns it."""
        self._bases.pop(key, None)
        promise = self.of(key)
        if promise is not None and self._further.pop(key, None) is None:
            del self._by_root[promise.claim.root]
        return promise

    def is_further(self, claim: StartClaim) -> bool:
        """Return whether another gang of its tree has the promise, and keeps it."""
        first = self.first(claim.root)
        return first is not None and first.gang != claim.gang and not first.yields(claim)

    def nodes_of_others(self, claim: StartClaim, planned: GangKey | None = None) -> tuple[str, ...]:
        """Return the nodes that are promised to others, but for one whose promise it would get.

        ``planned``: a gang that is placed before it, so its promise does not count.
        """
        first = self.first(claim.root)
        return nodes_of(
            one
            for one in self
            if one.gang not in (claim.gang, planned) and not (one is first and one.yields(claim))
        )


def nodes_of(promises: Iterable[Promise]) -> tuple[str, ...]:
    """Return the names of the nodes that are promised, sorted."""
    return tuple(sorted({node for one in promises for node in one.nodes}))


def is_wider(before: Promise | None, after: Promise | None) -> bool:
    """Return whether a change of a promise lets gangs go that it held back."""
    if before is None:
        return False
    if after is None:
        return True
    return after.start > before.start or not set(before.nodes) <= set(after.nodes)
