"""From a plan's rows to the assignments that are held: names, and the devices of each pod.

``muster.cluster.devices.onenode`` chooses the devices. Each pod gets devices on its planned node
and on its spares, disjoint from those of other pods, so that the set is valid on whichever node the
pod is bound.

A pod with a rank of its own keeps it: its completion index, or in a JobSet its place after the pods
of the jobs before its own. The others are numbered in the order of the plan, which follows the
fabric; successors of lost members get the numbers of those.

A pod with required node affinity of its own gets no spares: a spare is one more ORed term, and the
API server rejects additional terms on a gated pod that has terms already.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from muster.cluster.devices.choice import choose, class_weight
from muster.cluster.devices.onenode import Layout, LayoutNeed, PlacedShare, needs_of, put
from muster.cluster.devices.sharenames import share_name
from muster.cluster.events import Assignment
from muster.cluster.ids import NO_ROW
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import ranks
from muster.cluster.tables.gangview import GangView
from muster.placement.decision import Plan
from muster.placement.ranks.vacantranks import vacant_ranks
from muster.placement.search.lonepod import device_for
from muster.queueing.order import holding

PODS_PER_STEP: Final = 16  # about 0.2 ms; the caller decides at each yield whether to pause


@dataclass(slots=True)
class _Devices:
    """The uses of the devices of planned nodes, devices taken by the plan included."""

    snapshot: Snapshot
    #: Whether the plan is for one pod without a gang.
    lone: bool = False
    #: By node row.
    _uses: dict[int, list[int]] = field(default_factory=dict)
    #: By layout id and class id.
    _needs: dict[tuple[int, int], tuple[LayoutNeed, ...]] = field(default_factory=dict)

    def take(self, node: int, class_id: int) -> tuple[str, ...] | None:
        """Return devices for all asks of a class; () if it asks for none on this node.

        ``None`` where they are not free. On a node without known devices the device plugin
        chooses.
        """
        view = self.snapshot.devices
        layout = view.slots(node)
        needs = self._needs_of(node, layout, class_id)
        if not needs:
            return ()
        uses = self._uses.setdefault(node, view.uses(node))
        placed = self._priced(node, class_id, layout, uses, needs) or choose(layout, uses, needs)
        if placed is None:
            return None
        for share in placed:
            put(uses, share)
        return tuple(share_name(layout, view.names[node], share) for share in placed)

    def _priced(
        self,
        node: int,
        class_id: int,
        layout: Layout,
        uses: list[int],
        needs: tuple[LayoutNeed, ...],
    ) -> list[PlacedShare] | None:
        """Return the share of a lone pod that asks for a part of a device, else ``None``."""
        need = needs[0]
        if not self.lone or len(needs) > 1 or need.pieces > 1 or need.alone:
            return None
        device = device_for(self.snapshot, node, self.snapshot.classes[class_id])
        if device is None:
            return None
        only = tuple(share if n == device else None for n, share in enumerate(need.shares))
        return choose(layout, uses, (need._replace(shares=only),))

    def _needs_of(self, node: int, layout: Layout, class_id: int) -> tuple[LayoutNeed, ...]:
        if not layout:
            return ()
        key = (int(self.snapshot.devices.layout[node]), class_id)
        if key not in self._needs:
            self._needs[key] = needs_of(layout, self.snapshot.classes[class_id]) or ()
        return self._needs[key]


def assignments(snapshot: Snapshot, plan: Plan) -> Generator[None, None, tuple[Assignment, ...]]:
    """Return one assignment per pod of ``plan``, in its order; yields every few pods.

    ``snapshot`` must be the one that the plan was made on, because the plan has its rows.
    """
    gang = snapshot.gang(plan.gang)
    if len(plan.displaced):
        snapshot = snapshot.overlay(without_pods=plan.displaced.tolist())
    rank = _ranks(snapshot, plan, gang)
    rows = plan.pods.tolist()
    classes = [int(snapshot.pods.pod_class[row]) for row in rows]
    result: list[Assignment | None] = [None] * len(rows)
    devices = _Devices(snapshot, lone=len(rows) == 1)
    for step, index in enumerate(_heaviest_first(snapshot, classes)):
        chosen, names = _choose(snapshot, plan, index, classes[index], devices)
        result[index] = Assignment(
            uid=snapshot.pods.uid(rows[index]),
            node=names[0],
            spares=tuple(names[1:]),
            devices=chosen,
            rank=rank[index],
        )
        if step % PODS_PER_STEP == PODS_PER_STEP - 1:
            yield
    return tuple(each for each in result if each is not None)


def _heaviest_first(snapshot: Snapshot, classes: list[int]) -> list[int]:
    """Return the order in which pods get devices: the same as when their room was counted."""
    if not snapshot.devices.known or len(set(classes)) == 1:
        return list(range(len(classes)))
    weights = {number: class_weight(snapshot.classes[number]) for number in set(classes)}
    return sorted(range(len(classes)), key=lambda i: weights[classes[i]], reverse=True)


def _choose(
    snapshot: Snapshot, plan: Plan, index: int, class_id: int, devices: _Devices
) -> tuple[Mapping[str, tuple[str, ...]], list[str]]:
    """Return devices by node name, and the names of the planned node and the spares.

    A spare node where the devices are not free is left out.
    """
    pod_class = snapshot.classes[class_id]
    pinned = pod_class.node_affinity is not None
    spares = () if pinned else plan.spares[index].tolist()
    chosen: dict[str, tuple[str, ...]] = {}
    names = [snapshot.nodes.name(int(plan.nodes[index]))]
    taken = devices.take(int(plan.nodes[index]), class_id)
    if taken:
        chosen[names[0]] = taken
    for node in spares:
        taken = devices.take(node, class_id) if node != NO_ROW else None
        if taken is not None:
            names.append(snapshot.nodes.name(node))
            if taken:
                chosen[names[-1]] = taken
    return chosen, names


def _ranks(snapshot: Snapshot, plan: Plan, gang: GangView | None) -> list[int]:
    """Return the rank of each pod of ``plan``; those without their own take the vacant ones.

    Where a number comes twice (Jobs of one gang that count from 0 each) none is a rank: the pods
    are counted through.
    """
    numbers = snapshot.pods.rank[plan.pods]
    if gang is None or gang.spec is None:
        return [int(number) for number in numbers]
    own = ranks(gang.spec, numbers)
    unknown = own < 0
    if len(np.unique(own[~unknown])) < np.count_nonzero(~unknown):
        own = holding(gang) + np.arange(len(own), dtype=np.int64)
    elif unknown.any():
        vacant = vacant_ranks(snapshot, gang, int(unknown.sum()))
        own[unknown] = (holding(gang) + np.arange(len(own)))[unknown] if vacant is None else vacant
    result: list[int] = own.tolist()
    return result
