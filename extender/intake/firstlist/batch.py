"""What is told of a page of pods at once, while it is put together."""

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


@dataclass(slots=True)
class Telling:
    """Each pod's kind, and what is its own. ``kind``: int[n] into ``kinds``, or ``ALONE``."""

    kind: NDArray[np.intp]
    ranks: NDArray[np.int64]
    kinds: list[PodUpserted] = field(default_factory=list)
    plans: dict[int, PlanNote] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, count: int) -> "Telling":
        """Return one that tells nothing yet of so many pods."""
        return cls(np.full(count, ALONE, dtype=np.intp), np.full(count, -1, dtype=np.int64))

    def number(self, event: PodUpserted) -> int:
        """Return the number of a kind. By identity: alike events may be of other namespaces."""
        found = self._numbers.setdefault(id(event), len(self.kinds))
        if found == len(self.kinds):
            self.kinds.append(event)
        return found

    def add(self, number: int, place: int, rank: int, plan: PlanNote) -> None:
        """Tell of a pod with a plan."""
        self.kind[place], self.ranks[place], self.plans[place] = number, rank, plan

    def add_all(self, number: int, places: NDArray[np.intp], ranks: NDArray[np.int64]) -> None:
        """Tell of pods whose plans say nothing more than is told here."""
        self.kind[places], self.ranks[places] = number, ranks

    def alone(self) -> list[int]:
        """Return the places of whom nothing is told."""
        found: list[int] = np.flatnonzero(self.kind == ALONE).tolist()
        return found

    def event(
        self, uids: Uids, nodes: Sequence[str], created: Times, started: Times
    ) -> PodsBound | None:
        """Return what is told, ``None`` for nothing; of all pods of the page: who and where."""
        told = np.flatnonzero(self.kind != ALONE)
        if not len(told):
            return None
        used, first, kind = np.unique(self.kind[told], return_index=True, return_inverse=True)
        order = np.argsort(first)  # as the kinds come first
        among = np.searchsorted(told, [*self.plans]).tolist()
        return PodsBound(
            kinds=tuple(self.kinds[n] for n in used[order].tolist()),
            kind=np.argsort(order)[kind],
            uids=uids if len(told) == len(uids) else uids.at(told),
            nodes=some_of(nodes, told),
            created=created[told],
            started=started[told],
            ranks=self.ranks[told],
            plans=dict(zip(among, self.plans.values(), strict=True)),
        )
