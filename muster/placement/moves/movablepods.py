"""Who may be moved, and what moving costs.

A move ends a pod; its controller makes another, which is placed anew. So it is proposed only
for pods that Muster places, that a controller would make again, and that no owner asked to leave
alone. A pod is left alone for the first of these reasons that holds::

    not Muster's to place (DaemonSets, static pods, other schedulers) ─► nobody would make it
    again ─► on its way: leaving, or not bound yet ─► its owner says so (annotations) ─► of a
    higher priority than the gang that waits ─► a member of that gang

The price of a set of moves, the first difference decides::

    1  the highest priority among those disturbed      kube-scheduler's first rule for victims
                                                       (preemption.go, pickOneNodeForPreemption)
    2  devices whose work is interrupted               a gang that falls below its minimum stops
                                                       whole: all of its devices count, once
    3  gangs disturbed
    4  pods moved
    5  devices of the pods moved

Devices are counted in thousandths. A gang that keeps its minimum without the moved members (an
elastic one) loses only their work. No priority is weighed against another by a number: a move
of a lower priority is always the better one.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.cluster.devices.needs import MILLI, asks_of
from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.deviceasks import DeviceAsk, Milli
from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.pods import PodFlag, PodState

Rows = NDArray[np.int64]


class Stays(StrEnum):
    """Why a pod is left where it is."""

    NOT_MANAGED = "not placed by Muster"
    NOT_OWNED = "without a controller that would make it again"
    ON_ITS_WAY = "leaving, or not bound yet"
    ASKED = "not to be moved (annotation)"
    HIGHER = "of a higher priority than the gang that waits"
    ITS_OWN = "members of the gang that waits"


_REASONS: Final = tuple(Stays)


@dataclass(frozen=True, slots=True, eq=False)
class Movable:
    """Which pods may be moved, and why the others may not."""

    #: int64, pod rows that may be moved.
    rows: Rows
    #: int8[pods], index into the reasons of those that are on a node and may not move, else -1.
    why: NDArray[np.int8]

    def staying(self, on: NDArray[np.int64]) -> dict[Stays, int]:
        """Count the pods among rows ``on`` that may not be moved, by reason."""
        found = self.why[on]
        counts = np.bincount(found[found >= 0], minlength=len(_REASONS))
        return {reason: int(n) for reason, n in zip(_REASONS, counts, strict=True) if n}


def movable(snapshot: Snapshot, waiting: GangView) -> Movable:
    """Sort the pods that stand on nodes out: who may be moved for ``waiting``, who may not."""
    pods = snapshot.pods
    flags, state = pods.flags.array(), pods.state.array()
    own = snapshot.gang_columns.keys.find(waiting.key)
    standing = pods.node.array() >= 0

    def without(flag: PodFlag) -> NDArray[np.bool_]:
        lacks: NDArray[np.bool_] = (flags & np.uint8(flag)) == 0
        return lacks

    why = np.full(len(flags), -1, dtype=np.int8)
    for reason, holds in (
        (Stays.NOT_MANAGED, without(PodFlag.MANAGED)),
        (Stays.NOT_OWNED, without(PodFlag.OWNED)),
        (Stays.ON_ITS_WAY, ~without(PodFlag.TERMINATING) | (state != PodState.BOUND)),
        (Stays.ASKED, without(PodFlag.PREEMPTIBLE) | ~without(PodFlag.STAYS | PodFlag.FIRM)),
        (Stays.HIGHER, pods.priority.array() > waiting.priority),
        (Stays.ITS_OWN, pods.gang.array() == (-2 if own is None else own)),
    ):
        why[standing & holds & (why < 0)] = _REASONS.index(reason)
    return Movable(np.flatnonzero(standing & (why < 0)), why)


class Price(NamedTuple):
    """What a set of moves costs, in the order of importance; see the module's docstring."""

    priority: int
    interrupted: int
    gangs: int
    pods: int
    devices: int


NOTHING: Final = Price(-(1 << 31), 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Crew:
    """A running gang as its moves are priced."""

    key: GangKey
    priority: int
    #: Members that count towards ``needed``.
    standing: int
    needed: int
    #: Devices of all bound members, in thousandths.
    devices: int
    #: (role, standing, needed) of each role with a minimum.
    roles: tuple[tuple[int, int, int], ...] = ()

    def stops(self, roles: Collection[int]) -> bool:
        """Return whether the gang stops when members of these ``roles``, one entry each, go."""
        if self.standing - len(roles) < self.needed:
            return True
        gone = list(roles)
        return any(standing - gone.count(role) < needed for role, standing, needed in self.roles)


@dataclass(slots=True)
class MovePrices:
    """Prices of sets of pod rows in one snapshot; gangs are looked at once."""

    snapshot: Snapshot
    _crews: dict[int, Crew] = field(default_factory=dict)
    _devices: dict[int, int] = field(default_factory=dict)

    def devices(self, row: int) -> int:
        """Return how many thousandths of devices a pod has."""
        number = int(self.snapshot.pods.pod_class[row])
        if number not in self._devices:
            self._devices[number] = devices_of(self.snapshot.classes[number])
        return self._devices[number]

    def crew(self, gang: int) -> Crew:
        """Return a gang's facts by its row."""
        if gang not in self._crews:
            self._crews[gang] = self._look_at(gang)
        return self._crews[gang]

    def by_gang(self, rows: Iterable[int]) -> dict[int, list[int]]:
        """Return pod rows by the row of their gang."""
        found: dict[int, list[int]] = {}
        for row in rows:
            found.setdefault(int(self.snapshot.pods.gang[row]), []).append(row)
        return found

    def stops(self, gang: int, rows: Collection[int]) -> bool:
        """Return whether a gang stops while these members of it move."""
        role = self.snapshot.pods.role
        return self.crew(gang).stops([int(role[row]) for row in rows])

    def of(self, rows: Collection[int]) -> Price:
        """Return the price of moving some pods. It never falls when a pod is added."""
        if not rows:
            return NOTHING
        gangs = self.by_gang(rows)
        moved = {gang: sum(map(self.devices, mine)) for gang, mine in gangs.items()}
        return Price(
            priority=max(int(self.snapshot.pods.priority[row]) for row in rows),
            interrupted=sum(
                self.crew(gang).devices if self.stops(gang, mine) else moved[gang]
                for gang, mine in gangs.items()
            ),
            gangs=len(gangs),
            pods=len(rows),
            devices=sum(moved.values()),
        )

    def _devices_in_all(self, rows: NDArray[np.int32]) -> int:
        """Return how many thousandths of devices pods have; equal pods are looked at once."""
        numbers, first, counts = np.unique(
            self.snapshot.pods.pod_class[rows], return_index=True, return_counts=True
        )
        del numbers
        pairs = zip(rows[first].tolist(), counts.tolist(), strict=True)
        return sum(self.devices(row) * count for row, count in pairs)

    def _look_at(self, gang: int) -> Crew:
        key = self.snapshot.gang_at(gang)
        view = self.snapshot.gang(key)
        if view is None or view.spec is None:  # nobody knows what it needs: all of it
            rows = [] if view is None else view.bound.tolist()
            return Crew(key, 0, len(rows), len(rows), sum(map(self.devices, rows)))
        pods = self.snapshot.pods
        counted = np.concatenate([view.assumed, view.released, view.bound, view.counted])
        roles = []
        for role in view.spec.roles:
            number = pods.roles.find(role.name)
            if number is not None:
                here = int(np.count_nonzero(pods.role[counted] == number))
                roles.append((number, here, role.min_count))
        return Crew(
            key=key,
            priority=view.priority,
            standing=len(view.assumed) + len(view.released) + len(view.bound) + view.succeeded,
            needed=max(view.spec.min_count, 1),
            devices=self._devices_in_all(view.bound),
            roles=tuple(roles),
        )


def devices_of(pod_class: PodClass) -> int:
    """Return thousandths of devices that a pod has: of its largest ask, so that the network
    cards beside its GPUs are not counted as GPUs.
    """  # noqa: D205  # one sentence
    return max((_milli(ask) for ask in asks_of(pod_class)), default=0)


def _milli(ask: DeviceAsk) -> int:
    return ask.count * (ask.milli if isinstance(ask, Milli) else MILLI)
