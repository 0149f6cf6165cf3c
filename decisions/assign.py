"""From a plan's rows to the assignments that are held: names, and the devices of each pod.

Devices are taken in the order the node lists them free, which is by NUMA node and PCIe
parent, so the devices of one pod are neighbours. The planned node and the spares get
devices of their own, disjoint within the plan: whichever node wins, the set is valid.

A pod that has a rank of its own keeps it: its completion index, or in a JobSet its place
after the pods of the jobs before its own. The others are numbered in the order of the plan,
which follows the fabric.

A pod with required node affinity of its own gets no spares: a spare is one more ORed
term, and the API server lets nobody add terms to a gated pod that has some.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from cluster.constraints import PodClass
from cluster.events import Assignment
from cluster.gangs import ranks
from cluster.gangview import GangView
from cluster.ids import NO_ROW
from cluster.snapshot import Snapshot
from placement.decision import Plan
from queueing.order import holding

PODS_PER_STEP: Final = 16  # about 0.2 ms; the caller decides at each yield whether to pause


@dataclass(slots=True)
class _Devices:
    """Free devices of the nodes touched so far, each list shrinking as pods take from it."""

    snapshot: Snapshot
    _free: dict[tuple[int, str], list[str]] = field(default_factory=dict)

    def take(self, node: int, pod_class: PodClass) -> tuple[str, ...]:
        """Return devices for every counted resource of ``pod_class``; () if one runs short.

        A node without device rows, or with fewer healthy ones than its allocatable
        says, leaves the choice to the device plugin.
        """
        wanted = [
            (name, amount, self._of(node, name))
            for name, amount in pod_class.requests
            if "/" in name and amount > 0
        ]
        listed = [(name, amount, free) for name, amount, free in wanted if free is not None]
        if not listed or any(len(free) < amount for _, amount, free in listed):
            return ()
        taken: list[str] = []
        for _, amount, free in listed:
            taken.extend(free[:amount])
            del free[:amount]
        return tuple(taken)

    def _of(self, node: int, resource: str) -> list[str] | None:
        key = (node, resource)
        if key not in self._free:
            self._free[key] = list(self.snapshot.devices.free_devices(node, resource))
        return self._free[key] or None


def assignments(snapshot: Snapshot, plan: Plan) -> Generator[None, None, tuple[Assignment, ...]]:
    """Return one assignment per pod of ``plan``, in its order; yields every few pods.

    ``snapshot`` must be the one the plan was made on: the plan holds its rows.
    """
    devices = _Devices(snapshot)
    known = snapshot.devices.count > 0
    gang = snapshot.gang(plan.gang)
    rank = _ranks(snapshot, plan, gang)
    result: list[Assignment] = []
    for index, row in enumerate(plan.pods.tolist()):
        pod_class = snapshot.classes[snapshot.pods.pod_class[row]]
        spares = () if pod_class.node_affinity is not None else plan.spares[index].tolist()
        nodes = [node for node in (int(plan.nodes[index]), *spares) if node != NO_ROW]
        names = [snapshot.nodes.name(node) for node in nodes]
        chosen: Mapping[str, tuple[str, ...]] = {}
        if known:
            sets = [devices.take(node, pod_class) for node in nodes]
            chosen = {name: taken for name, taken in zip(names, sets, strict=True) if taken}
        result.append(
            Assignment(
                uid=snapshot.pods.uid(row),
                node=names[0],
                spares=tuple(names[1:]),
                devices=chosen,
                rank=rank[index],
            )
        )
        if index % PODS_PER_STEP == PODS_PER_STEP - 1:
            yield
    return tuple(result)


def _ranks(snapshot: Snapshot, plan: Plan, gang: GangView | None) -> list[int]:
    """Return the rank of each pod of ``plan``; late ones without their own come after the rest."""
    numbers = snapshot.pods.rank[plan.pods]
    if gang is None or gang.spec is None:
        return [int(number) for number in numbers]
    own = ranks(gang.spec, numbers)
    placed = holding(gang) + np.arange(len(own))
    result: list[int] = np.where(own >= 0, own, placed).tolist()
    return result
