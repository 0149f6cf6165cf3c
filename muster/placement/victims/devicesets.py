"""Victims that leave devices behind: amounts do not show what pods share.

::

    node n1     GPU 0: a half and a half     GPU 1: a third      a member asks for 1 whole GPU
    by amounts  a fraction takes no ``nvidia.com/gpu``, so the member fits already
    by devices  it fits once all pods of one GPU have gone; those of GPU 1 are the fewest

Node by node: the device whose pods cost the least, then the next one, until the node takes one
member more; whoever was not needed for that stays. Of all nodes the cheapest such step is taken
first, until the gang fits. The same arithmetic counts parts of devices, replicas and MIG instances
(``muster.cluster.devices.rooms``). The planner has the last word.
"""

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from muster.cluster.devices.claims import PackedClaim, unpack
from muster.cluster.devices.onenode import WIDTH, Layout, needs_of, put
from muster.cluster.devices.rooms import by_state
from muster.cluster.ids import NO_ROW
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.podconstraints import PodClass
from muster.placement.victims.boundedset import VictimDraft
from muster.placement.victims.costs import VictimCost
from muster.placement.victims.ground import RoomKind
from muster.placement.victims.units import GivingUnit

MOST_NODES: Final = 512
"""Nodes of a domain that are looked at, in their order: each costs some 0.2 ms."""

_MILLI: Final = 1000

MemberKind = tuple[RoomKind, PodClass]
"""Members of one kind, and what one of them asks for."""


def are_shared(snapshot: Snapshot, kinds: Sequence[MemberKind]) -> bool:
    """Return whether devices that members ask for are in use in part, or out of use."""
    devices = snapshot.devices
    if not devices.known:
        return False
    able = np.flatnonzero(devices.state != NO_ROW)
    for state in np.unique(devices.state[able]).tolist():
        layout, *uses = memoryview(devices.states[state]).cast("i").tolist()
        slots = devices.layouts[layout]
        if any(_is_odd(slots, uses, pod_class) for _, pod_class in kinds):
            return True
    return False


def _is_odd(layout: Layout, uses: Sequence[int], pod_class: PodClass) -> bool:
    """Return whether amounts of a node do not tell which of its devices a pod can have."""
    for need in needs_of(layout, pod_class) or ():
        for number, slot in enumerate(layout):
            used = tuple(uses[number * WIDTH : (number + 1) * WIDTH])
            is_had_whole = used[0] == _MILLI and used[2] == 1 == slot.shape.units
            if need.shares[number] is not None and not (
                slot.healthy and (is_had_whole or not any(used))
            ):
                return True
    return False


@dataclass(slots=True, eq=False)
class DeviceSets:
    """Looks for a set in one domain, and leaves the draft empty."""

    snapshot: Snapshot
    draft: VictimDraft
    #: Units that free something there, or quota.
    units: Sequence[GivingUnit]
    #: Node rows by position.
    nodes: Sequence[int]
    #: By row of a pod, the units that it ends with, the cheapest first.
    _ending: dict[int, list[GivingUnit]] = field(default_factory=dict)
    #: By position, the units that free amounts there.
    _here: dict[int, list[tuple[GivingUnit, tuple[int, ...]]]] = field(default_factory=dict)
    #: By position, the claims on the devices of a node.
    _claims: dict[int, list[PackedClaim]] = field(default_factory=dict)

    def run(self, kinds: Sequence[MemberKind]) -> Steps[tuple[GivingUnit, ...] | None]:
        """Return a set after which all members have devices, ``None``: none was found."""
        for unit in sorted(self.units, key=lambda one: (self._key([one]), one.name)):
            for row in unit.rows:
                self._ending.setdefault(row, []).append(unit)
            for at, amounts in self.draft.trial.ground.freed(unit):
                self._here.setdefault(at, []).append((unit, amounts))
        yield
        enough = True
        for number, (kind, pod_class) in enumerate(kinds):
            lacks = kind.need - self._now(number, pod_class)
            enough = enough and (yield from self._freed(kind, pod_class, lacks))
        for unit in self.draft.by_worth(self.units) if enough else ():  # quota alone is short
            if self.draft.consent.suffices():
                break
            if self.draft.consent.helps(unit):
                self.draft.try_add(unit)
        found = None
        if enough and self.draft.consent.suffices():
            found = tuple(sorted(self.draft.units.chosen, key=lambda unit: unit.name))
        self.draft.clear()
        return found

    def _now(self, number: int, pod_class: PodClass) -> int:
        """Return how many members of a kind the domain takes as it is."""
        trial, snapshot = self.draft.trial, self.snapshot
        takes = trial.ground.takes(trial.ground.free)[number]
        rooms = snapshot.devices.rooms(pod_class, snapshot.nodes.count)[np.array(self.nodes)]
        return int(np.minimum(takes, rooms)[trial.low : trial.high].sum())

    def _freed(self, kind: RoomKind, pod_class: PodClass, lacks: int) -> Steps[bool]:
        """Add units, the cheapest step first; returns whether so many members fit then."""
        heap: list[tuple[tuple[int, ...], int]] = []
        for at in self._places() if lacks > 0 else ():
            step = self._step(at, kind, pod_class)
            if step is not None:
                heap.append((self._key(step[1]), at))
            yield
        heapq.heapify(heap)
        while lacks > 0 and heap:
            _, at = heapq.heappop(heap)
            step = self._step(at, kind, pod_class)
            yield
            if step is None:
                continue
            now = (self._key(step[1]), at)
            if heap and now > heap[0]:
                heapq.heappush(heap, now)  # what went since made it dearer, or others cheaper
                continue
            for unit in step[1]:
                self.draft.try_add(unit)
            lacks -= step[0]
            heapq.heappush(heap, now)
        return lacks <= 0

    def _places(self) -> list[int]:
        """Return the positions in the domain where a unit has part in a device."""
        trial, devices = self.draft.trial, self.snapshot.devices
        here = sorted(at for at in self._here if trial.low <= at < trial.high)
        return [at for at in here if devices.slots(self.nodes[at])][:MOST_NODES]

    def _step(
        self, at: int, kind: RoomKind, pod_class: PodClass
    ) -> tuple[int, list[GivingUnit]] | None:
        """Return how many members more a node takes, and the units that go for it.

        ``None``: it takes no more, whoever goes. Nothing is added.
        """
        before, added = self._members(at, kind, pod_class), list[GivingUnit]()
        gain = 0
        for rows in self._by_device(at):
            added += self._adding(rows)
            gain = self._members(at, kind, pod_class) - before
            if gain > 0:
                break
        for unit in list(added) if gain > 0 else ():
            self.draft.drop(unit)
            if self._members(at, kind, pod_class) - before < gain:
                self.draft.try_add(unit)
            else:
                added.remove(unit)
        for unit in added:
            self.draft.drop(unit)
        return (gain, added) if gain > 0 else None

    def _adding(self, rows: Collection[int]) -> list[GivingUnit]:
        """Add the units with which some pods end, all or none; return them."""
        added, gone = list[GivingUnit](), self._gone()
        for row in rows:
            if row in gone or any(row in one.rows for one in added):
                continue
            unit = next((one for one in self._ending[row] if self.draft.try_add(one)), None)
            if unit is None:
                for one in added:
                    self.draft.drop(one)
                return []
            added.append(unit)
        return added

    def _gone(self) -> set[int]:
        return {row for unit in self.draft.units.chosen for row in unit.rows}

    def _by_device(self, at: int) -> list[list[int]]:
        """Return the pods on each device that can all end, the cheapest device first."""
        found: dict[int, list[int]] = {}
        for claim in self._claims_at(at):
            found.setdefault(claim.device, []).append(claim.pod)
        able = [rows for rows in found.values() if all(row in self._ending for row in rows)]
        gone = self._gone()
        return sorted(able, key=lambda rows: (self._key(self._cheapest(rows, gone)), rows))

    def _cheapest(self, rows: Sequence[int], gone: set[int]) -> list[GivingUnit]:
        """Return the units that would go so that some pods end."""
        return list(dict.fromkeys(self._ending[row][0] for row in rows if row not in gone))

    def _claims_at(self, at: int) -> list[PackedClaim]:
        if at not in self._claims:
            self._claims[at] = unpack(self.snapshot.devices.claims[self.nodes[at]])
        return self._claims[at]

    def _members(self, at: int, kind: RoomKind, pod_class: PodClass) -> int:
        """Return how many members a node takes without what was added, by devices and amounts."""
        if not kind.able[at]:
            return 0
        layout = self.snapshot.devices.slots(self.nodes[at])
        uses, gone = [0] * (len(layout) * WIDTH), self._gone()
        for claim in self._claims_at(at):
            if claim.pod not in gone:
                put(uses, claim.share)
        state = np.array(uses, dtype=np.int32).reshape(1, -1, WIDTH)
        free = self.draft.trial.ground.free[:, at].tolist()
        chosen = set(self.draft.units.chosen)
        for unit, amounts in self._here.get(at, ()):
            if unit in chosen:
                free = [left + more for left, more in zip(free, amounts, strict=True)]
        room = min(int(by_state(layout, state, pod_class)[0]), kind.need)
        for number, amount in kind.asks:
            room = min(room, int(free[number]) // amount)
        return max(room, 0)

    def _key(self, units: Sequence[GivingUnit]) -> tuple[int, ...]:
        cost = VictimCost()
        for unit in units:
            cost = cost.plus(unit.cost)
        return self.draft.order.key(cost)
