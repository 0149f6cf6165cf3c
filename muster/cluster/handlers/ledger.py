"""The ledger's transitions: assume, release, forget, expire, and what a changed node breaks.

The states are drawn in ``muster.cluster.tables.holds``. The rules:

- A hold is counted on exactly one node, as a bound pod would be.
- Room on spare nodes is a soft hold (``spare_reserved``): no other spare may use it, and
  planned pods avoid it where there is a choice. Devices of spares are firm: their names are in
  the pod's annotation, and kube-scheduler, which checks room, does not check devices.
- An assumed hold on a node that becomes unfit is dropped at once: nothing is pinned yet.
- A device that becomes unhealthy, or that the kubelet gave to another pod, makes the node unfit
  for the pods that were planned on that device.
- A hot spare yields before all others. It is removed then, because there is no pod that waits.
- A released hold moves to the first fit spare node with room. Without one it is *broken* and
  reported once. It stays on its node, because kube-scheduler may still bind it there: its view of
  the cluster may be newer or older than this one (``takes`` knows where it must not).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from heapq import heappop
from itertools import count

from muster.cluster.effects import (
    CapacityFreed,
    DevicesDisturbed,
    EventOutcome,
    HoldExpired,
    Overcommitted,
    PlanBroken,
)
from muster.cluster.handlers import devicetroubles
from muster.cluster.model import Model
from muster.cluster.tables.holds import Hold, HoldState
from muster.cluster.tables.pods import PodState

_STATE = {
    HoldState.ASSUMED: PodState.ASSUMED,
    HoldState.RELEASED: PodState.RELEASED,
    HoldState.STANDBY: PodState.STANDBY,
}
_BINDABLE = devicetroubles.REPLACEABLE | {""}
_YIELDS_FIRST = {PodState.STANDBY.value: 0, PodState.ASSUMED.value: 1}


def enter(model: Model, row: int, hold: Hold) -> None:
    """Store a new hold and take its room, the room on its spare nodes, and all its devices."""
    node = model.node_row(hold.node)
    model.pods.state[row] = _STATE[hold.state]
    model.holds[row] = hold
    model.occupy(row, node)
    model.devices.claim(row, node, hold.devices.get(hold.node, ()), spare=False)
    for spare in hold.spares:
        model.reserve(row, spare, 1)
        names = hold.devices.get(spare, ())
        model.devices.claim(row, model.node_row(spare), names, spare=True)
    if hold.state is HoldState.ASSUMED:
        model.add_deadline(hold.deadline, row)


def drop(model: Model, row: int, state: PodState) -> Hold | None:
    """Undo ``enter`` and set the pod's state; a pod without a hold only gets the state."""
    hold = model.holds[row]
    if hold is not None:
        for spare in hold.spares:
            _give_back(model, row, spare)
        model.leave_node(row)
        model.holds[row] = None
    model.pods.state[row] = state
    return hold


def give_up(model: Model, row: int, out: EventOutcome) -> None:
    """Give up a hot spare; the row is unused afterwards."""
    drop(model, row, PodState.STANDBY)
    strike_out(model, row, out)
    out.effects.append(CapacityFreed())


def strike_out(model: Model, row: int, out: EventOutcome) -> None:
    """Remove a hot spare that holds nothing any more."""
    gang = model.pods.gang[row]
    model.standby[gang].discard(row)
    if not model.standby[gang]:
        del model.standby[gang]
    out.gang(model.gangs.keys[gang])
    model.set_gang(row, None, 0.0)
    model.free_pod(row)


def release(model: Model, row: int) -> None:
    """Note that an assumed pod's pin is in the API server, so that it no longer expires."""
    hold = model.holds[row]
    if hold is not None and hold.state is HoldState.ASSUMED:
        model.holds[row] = replace(hold, state=HoldState.RELEASED, deadline=float("inf"))
        model.pods.state[row] = PodState.RELEASED


def is_due(model: Model, now: float) -> bool:
    """Return whether a deadline has passed that ``expire`` has not handled."""
    return bool(model.deadlines) and model.deadlines[0][0] <= now


def expire(model: Model, out: EventOutcome, now: float, most: int | None) -> None:
    """Drop assumed holds with passed deadlines; handles ``most`` deadlines, ``None``: all."""
    for looked in count():
        if looked == most or not is_due(model, now):
            return
        deadline, row = heappop(model.deadlines)
        hold = model.holds[row] if row < model.pods.count else None
        if hold is not None and hold.state is HoldState.ASSUMED and hold.deadline == deadline:
            _lose(model, row, out, "deadline")
            review_left(model, hold.node, out)


def report_overcommit(model: Model, node: int, out: EventOutcome) -> None:
    """Report resources of which *bound* pods use more than a living node has."""
    if not model.nodes.alive[node]:
        return
    held = _amounts(model, model.held_on(node))
    for resource, free in model.shortage(node).items():
        excess = -free - held.get(resource, 0)
        if excess > 0:
            name, what = model.nodes.names[node], model.nodes.resources[resource]
            out.effects.append(Overcommitted(name, what, excess))


def review(model: Model, node: int, out: EventOutcome) -> None:
    """Check every hold on a node again after the node or its bound pods changed.

    Holds that the node cannot take for other reasons than room yield first. If the others do
    not fit together, they yield one by one until the rest fits: hot spares first, then assumed
    holds, which cost nothing to give up, then released ones, lowest priority first.
    """
    short = model.shortage(node)
    fit = []
    for row in list(model.held_on(node)):
        reason = model.unfit(row, node) or devicetroubles.lost(model, row, node)
        if reason:
            _yields(model, row, reason, short, out)
        else:
            fit.append(row)
    for row in sorted(fit, key=lambda row: _YIELDS_FIRST.get(model.pods.state[row], 2)):
        if _asks_for_any(model, row, short):
            _yields(model, row, "node filled", short, out)
        else:
            _mend(model, row, out)


def takes(model: Model, row: int, node: int) -> bool:
    """Return whether a pod can run if it is bound to a node of its hold now.

    It cannot on a node that is gone, or that has no device left for it. Cordons, taints, ports and
    room are left to the scheduler that binds, which may have a newer view. If other devices can
    replace a planned one, the choice is left to the kubelet.
    """
    return model.nodes.alive[node] and devicetroubles.lost(model, row, node) in _BINDABLE


def review_disturbed(model: Model, out: EventOutcome) -> None:
    """Check the holds on nodes with devices that became unhealthy or were given to other pods.

    A hold that yields frees devices for others, so this repeats until nothing changes.
    """
    disturbed = model.devices.disturbed
    while disturbed:
        node = disturbed.pop()
        if model.nodes.alive[node] or model.nodes.refs[node]:
            review(model, node, out)
            out.effects.append(DevicesDisturbed(model.nodes.names[node]))


def review_left(model: Model, name: str | None, out: EventOutcome) -> None:
    """Check the holds on a node where room was freed, if one of them is broken."""
    node = None if name is None else model.nodes.names.find(name)
    if node is not None and _has_broken(model, node):
        review(model, node, out)


def _has_broken(model: Model, node: int) -> bool:
    holds = (model.holds[row] for row in model.held_on(node))
    return any(hold is not None and hold.broken for hold in holds)


def _yields(model: Model, row: int, reason: str, short: dict[int, int], out: EventOutcome) -> None:
    # Move or drop a hold: its room no longer counts against the others.
    hold = model.holds[row]
    if hold is None:
        return
    for resource, amount in model.traits(model.pods.pod_class[row]).requests:
        if resource in short:
            short[resource] += amount
    if hold.state is HoldState.STANDBY:
        give_up(model, row, out)
    elif hold.state is HoldState.ASSUMED:
        _lose(model, row, out, reason)
    elif not _move_to_spare(model, row, out) and hold.broken != reason:
        model.holds[row] = replace(hold, broken=reason)
        out.gang(hold.gang)
        if not hold.broken and hold.gang is not None:
            out.effects.append(PlanBroken(hold.gang, model.pods.uids[row], reason))


def _mend(model: Model, row: int, out: EventOutcome) -> None:
    hold = model.holds[row]
    if hold is not None and hold.broken:
        model.holds[row] = replace(hold, broken="")
        out.gang(hold.gang)


def _lose(model: Model, row: int, out: EventOutcome, reason: str) -> None:
    hold = drop(model, row, PodState.WAITING)
    if hold is not None and hold.gang is not None:
        out.effects.append(HoldExpired(hold.gang, model.pods.uids[row], reason))
        out.gang(hold.gang)
    out.effects.append(CapacityFreed())


def _move_to_spare(model: Model, row: int, out: EventOutcome) -> bool:
    hold = model.holds[row]
    if hold is None:
        return False
    for spare in hold.spares:
        target = model.node_row(spare)
        if model.unfit(row, target) or devicetroubles.lost(model, row, target):
            continue
        if not _has_room(model, row, target):
            continue
        devices = hold.devices.get(spare, ())
        _give_back(model, row, spare)
        model.leave_node(row)
        left = tuple(name for name in hold.spares if name != spare)
        model.holds[row] = replace(hold, node=spare, spares=left, broken="")
        model.occupy(row, target)
        model.devices.claim(row, target, devices, spare=False)
        out.gang(hold.gang)
        out.effects.append(CapacityFreed())
        return True
    return False


def _give_back(model: Model, row: int, spare: str) -> None:
    model.devices.unclaim(row, model.node_row(spare))
    model.reserve(row, spare, -1)


def _has_room(model: Model, row: int, node: int) -> bool:
    requests = model.traits(model.pods.pod_class[row]).requests
    return all(model.nodes.free[resource][node] >= amount for resource, amount in requests)


def _asks_for_any(model: Model, row: int, short: Mapping[int, int]) -> bool:
    if not short:
        return False
    requests = model.traits(model.pods.pod_class[row]).requests
    return any(short.get(resource, 0) < 0 for resource, _ in requests)


def _amounts(model: Model, rows: Iterable[int]) -> dict[int, int]:
    total: dict[int, int] = {}
    for row in rows:
        for resource, amount in model.traits(model.pods.pod_class[row]).requests:
            total[resource] = total.get(resource, 0) + amount
    return total
