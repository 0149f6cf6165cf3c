"""The pods of a page that are applied together: collected step by step, applied as one event."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.texts import some_of
from muster.cluster.columns.uids import Uids
from muster.cluster.events import PlanNote, PodsBound, PodUpserted
from muster.kube.firstlist.versions import Times

ALONE: Final = -1
"""The kind of a pod that must be applied by itself."""


@dataclass(slots=True)
class BoundBatch:
    """Bound pods of a page of n pods, grouped into kinds."""

    #: int[n]: the kind of each pod, an index into ``kinds``; ``ALONE`` for pods not added
    kind: NDArray[np.intp]
    #: int64[n]: each pod's rank in its gang; -1 for none
    ranks: NDArray[np.int64]
    #: one event of each kind; all but the UID, node, times and rank holds for every pod of the kind
    kinds: list[PodUpserted] = field(default_factory=list)
    #: plans of members that were added one by one, by the place of the pod in the page
    plans: dict[int, PlanNote] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, count: int) -> "BoundBatch":
        """Return a batch of ``count`` pods that are all alone so far."""
        return cls(np.full(count, ALONE, dtype=np.intp), np.full(count, -1, dtype=np.int64))

    def number(self, event: PodUpserted) -> int:
        """Return the number of a kind, by identity: equal events may be of other namespaces."""
        found = self._numbers.setdefault(id(event), len(self.kinds))
        if found == len(self.kinds):
            self.kinds.append(event)
        return found

    def add_alike(self, number: int, places: NDArray[np.intp]) -> None:
        """Add pods of one kind that are in no gang."""
        self.kind[places] = number

    def add_member(self, number: int, place: int, rank: int, plan: PlanNote) -> None:
        """Add a member of a gang with its plan."""
        self.kind[place], self.ranks[place], self.plans[place] = number, rank, plan

    def add_members(self, number: int, places: NDArray[np.intp], ranks: NDArray[np.int64]) -> None:
        """Add members with plans that contain only node and rank; ``ranks`` has one for each."""
        self.kind[places], self.ranks[places] = number, ranks

    def alone(self) -> list[int]:
        """Return the places of the pods that were not added, ascending."""
        found: list[int] = np.flatnonzero(self.kind == ALONE).tolist()
        return found

    def event(
        self, uids: Uids, nodes: Sequence[str], created: Times, started: Times
    ) -> PodsBound | None:
        """Return the event of the pods that were added, ``None`` if there are none.

        The arguments have an entry for each pod of the page.
        """
        added = np.flatnonzero(self.kind != ALONE)
        if not len(added):
            return None
        used, first, kind = np.unique(self.kind[added], return_index=True, return_inverse=True)
        order = np.argsort(first)  # as the kinds come first
        among = np.searchsorted(added, [*self.plans]).tolist()
        return PodsBound(
            kinds=tuple(self.kinds[n] for n in used[order].tolist()),
            kind=np.argsort(order)[kind],
            uids=uids if len(added) == len(uids) else uids.at(added),
            nodes=some_of(nodes, added),
            created=created[added],
            started=started[added],
            ranks=self.ranks[added],
            plans=dict(zip(among, self.plans.values(), strict=True)),
        )
