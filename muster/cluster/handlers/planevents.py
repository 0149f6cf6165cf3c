"""What the planner intends: plans held, pods released or given up, gangs skipped, time.

Facts are applied as they come; intentions are checked first. ``held`` checks the whole plan before
it changes anything: a plan is held whole or not at all.
"""

from dataclasses import dataclass, field

from muster.cluster.devices.choice import choose
from muster.cluster.devices.onenode import fits, needs_known_devices, put
from muster.cluster.devices.sharenames import named_shares
from muster.cluster.effects import CapacityFreed, EventOutcome, GangChanged
from muster.cluster.errors import PlanStale
from muster.cluster.events import (
    Assignment,
    GangSkipped,
    PlanHeld,
    PodForgotten,
    PodReleased,
    StandbyHeld,
    Tick,
)
from muster.cluster.handlers import hotspares, ledger
from muster.cluster.handlers.podevents import gang_key
from muster.cluster.model import Model
from muster.cluster.specs.podconstraints import HostPort, PodClass
from muster.cluster.tables.holds import Hold, HoldState
from muster.cluster.tables.matchcounts import collide
from muster.cluster.tables.pods import OCCUPYING, STATES, PodState


@dataclass(slots=True)
class _Claims:
    """What all assignments of a plan take together."""

    #: (node row, resource id) → amount.
    planned: dict[tuple[int, int], int] = field(default_factory=dict)
    #: The same, on spare nodes.
    spare: dict[tuple[int, int], int] = field(default_factory=dict)
    #: By node row, the uses of its devices, the plan included.
    devices: dict[int, list[int]] = field(default_factory=dict)
    #: By node row, its pods, the plan included.
    pods: dict[int, list[int]] = field(default_factory=dict)


def held(model: Model, event: PlanHeld, out: EventOutcome, *, now: float) -> None:
    """Assume every assignment of a plan; raise ``PlanStale`` and change nothing if one fails."""
    if event.displaced:
        rows = _checked_beside_spares(model, event, out, now)
    else:
        rows = _check(model, event, now)
    for row, assignment in zip(rows, event.assignments, strict=True):
        ledger.enter(model, row, _hold_of(event, assignment))
    gang = model.gangs.keys.find(event.gang)
    if gang is not None and not event.continued:
        model.gangs.planned(gang)
    out.effects.append(GangChanged(event.gang))


def _checked_beside_spares(
    model: Model, event: PlanHeld, out: EventOutcome, now: float
) -> list[int]:
    """Return the pod rows of a plan that displaces hot spares, and remove those."""
    lifted = hotspares.lift(model, event, f"plan {event.plan_id} for {event.gang}")
    try:
        rows = _check(model, event, now)
    except PlanStale:
        hotspares.put_back(model, lifted)
        raise
    hotspares.forget(model, lifted, out)
    return rows


def stood_by(model: Model, event: StandbyHeld, out: EventOutcome) -> None:
    """Hold hot spares for a gang; ``PlanStale`` and no change if one has no room."""
    what = f"hot spares for {event.gang}"
    like = model.directory.row(event.like)
    if like is None or gang_key(model, like) != event.gang:
        raise PlanStale(f"{what}: pod {event.like.hex()} is not its member")
    if model.pods.state[like] not in OCCUPYING:
        raise PlanStale(f"{what}: pod {event.like.hex()} holds no room")
    uids = {spare.uid for spare in event.hot_spares}
    if len(uids) < len(event.hot_spares) or any(
        model.directory.row(uid) is not None for uid in uids
    ):
        raise PlanStale(f"{what}: a hot spare has the uid of another one")
    claims = _Claims()
    for spare in event.hot_spares:
        _check_nodes(model, like, spare, claims, what)
    _check_room(model, claims, what)
    hotspares.enter(model, event, like, out)
    hotspares.settle(model, model.pods.gang[like], out)


def released(model: Model, event: PodReleased, out: EventOutcome) -> None:
    """Note that a pod is pinned. For other states than ASSUMED the watch will show the truth."""
    row = model.directory.row(event.uid)
    if row is not None and model.pods.state[row] == PodState.ASSUMED:
        ledger.release(model, row)
        out.gang(gang_key(model, row))


def forgotten(model: Model, event: PodForgotten, out: EventOutcome) -> None:
    """Drop an assumed hold. A released one stays, unless its pod was only nominated."""
    row = model.directory.row(event.uid)
    droppable = (PodState.ASSUMED, PodState.RELEASED) if event.nominated else (PodState.ASSUMED,)
    if row is not None and model.pods.state[row] in droppable:
        hold = ledger.drop(model, row, PodState.WAITING)
        out.gang(gang_key(model, row))
        out.effects.append(CapacityFreed())
        ledger.review_left(model, None if hold is None else hold.node, out)


def skipped(model: Model, event: GangSkipped, out: EventOutcome) -> None:
    """Count a refusal. No ``GangChanged``: else the planner would try the gang for ever."""
    row = model.gangs.keys.find(event.key)
    if row is not None:
        model.gangs.skipped(row, event.reason)
        out.changed = True


def tick(model: Model, event: Tick, out: EventOutcome, *, now: float) -> None:
    """Expire holds, and check those on nodes that no list had."""
    ledger.expire(model, out, now, event.most)
    for node in sorted(model.unsettled):
        ledger.review(model, node, out)
    model.unsettled.clear()


def _hold_of(event: PlanHeld, assignment: Assignment) -> Hold:
    return Hold(
        state=HoldState.ASSUMED,
        node=assignment.node,
        spares=assignment.spares,
        pins=(assignment.node, *assignment.spares),
        deadline=event.deadline,
        plan_id=event.plan_id,
        gang=event.gang,
        devices=assignment.devices,
        rank=assignment.rank,
        generation=event.generation,
    )


# --- checks: nothing is changed below -------------------------------------------------


def _check(model: Model, event: PlanHeld, now: float) -> list[int]:
    plan = f"plan {event.plan_id} for {event.gang}"
    if not event.assignments:
        raise PlanStale(f"{plan} assigns no pod")
    if not event.deadline > now:
        raise PlanStale(f"{plan}: its deadline {event.deadline} has passed (now {now})")
    claims = _Claims()
    gang = model.gangs.keys.find(event.gang)
    rows = [_check_pod(model, gang, a, plan) for a in event.assignments]
    if len(set(rows)) < len(rows):
        raise PlanStale(f"{plan} assigns a pod twice")
    for row, assignment in zip(rows, event.assignments, strict=True):
        _check_nodes(model, row, assignment, claims, plan)
    _check_room(model, claims, plan)
    return rows


def _check_pod(model: Model, gang: int | None, assignment: Assignment, plan: str) -> int:
    row = model.directory.row(assignment.uid)
    if row is None:
        raise PlanStale(f"{plan}: pod {assignment.uid.hex()} is gone")
    state = STATES[model.pods.state[row]]
    if state is not PodState.WAITING:
        raise PlanStale(f"{plan}: pod {assignment.uid.hex()} is {state.name}, not WAITING")
    if model.pods.gang[row] != gang:
        raise PlanStale(f"{plan}: pod {assignment.uid.hex()} is not its member")
    return row


def _check_nodes(
    model: Model, row: int, assignment: Assignment, claims: _Claims, plan: str
) -> None:
    nodes = (assignment.node, *assignment.spares)
    if len(set(nodes)) < len(nodes):
        raise PlanStale(f"{plan}: node and spares {nodes} are not distinct")
    strangers = set(assignment.devices) - set(nodes)
    if strangers:
        raise PlanStale(f"{plan}: devices on {sorted(strangers)}, which are not assigned")
    class_id = model.pods.pod_class[row]
    traits, pod_class = model.traits(class_id), model.classes[class_id]
    for name in nodes:
        node = _check_node(model, row, name, plan)
        taken = claims.planned if name == assignment.node else claims.spare
        for resource, amount in traits.requests:
            taken[node, resource] = taken.get((node, resource), 0) + amount
        named = assignment.devices.get(name, ())
        if named or name == assignment.node:
            _check_devices(model, row, pod_class, node, named, claims, plan)
        if name == assignment.node and traits.host_ports:
            _check_ports(model, row, traits.host_ports, node, claims, plan)


def _check_node(model: Model, row: int, name: str, plan: str) -> int:
    node = model.nodes.names.find(name)
    if node is None:
        raise PlanStale(f"{plan}: node {name} is unknown")
    reason = model.unfit(row, node)
    if reason:
        raise PlanStale(f"{plan}: node {name}: {reason}")
    return node


def _check_devices(
    model: Model,
    row: int,
    pod_class: PodClass,
    node: int,
    named: tuple[str, ...],
    claims: _Claims,
    plan: str,
) -> None:
    devices, names = model.devices, model.nodes.names
    layout = devices.slots(node)
    needs = devices.needs(row, node)
    if needs is None or (not layout and needs_known_devices(pod_class)):
        raise PlanStale(
            f"{plan}: no device of {names[node]} suits pod {model.pods.uids[row].hex()}"
        )
    if not needs:
        if named:
            raise PlanStale(f"{plan}: devices {named} of {names[node]} are not free for such a pod")
        return
    uses = claims.devices.setdefault(node, devices.uses(node))
    placed = (
        named_shares(layout, devices.names[node], needs, named)
        if named
        else choose(layout, uses, needs)
    )
    if placed is None and named:
        raise PlanStale(f"{plan}: devices {named} of {names[node]} are not what its pod asks for")
    if placed is None or not fits(layout, uses, placed, anew=True):
        raise PlanStale(f"{plan}: devices {named or ''} of {names[node]} are not free")
    for share in placed:
        put(uses, share)


def _check_ports(
    model: Model, row: int, mine: tuple[HostPort, ...], node: int, claims: _Claims, plan: str
) -> None:
    beside = claims.pods.setdefault(node, model.pods_on(node))
    for other in beside:
        theirs = model.traits(model.pods.pod_class[other]).host_ports
        if any(collide(a, b) for a in mine for b in theirs):
            raise PlanStale(f"{plan}: a host port is taken on {model.nodes.names[node]}")
    beside.append(row)


def _check_room(model: Model, claims: _Claims, plan: str) -> None:
    for (node, resource), amount in claims.planned.items():
        free = model.nodes.free[resource][node]
        if amount > free:
            raise PlanStale(_lacks(model, plan, node, resource, amount, free))
    for (node, resource), amount in claims.spare.items():
        planned = claims.planned.get((node, resource), 0)
        left = model.nodes.free[resource][node] - planned - model.nodes.spare[resource][node]
        if amount > left:
            raise PlanStale(_lacks(model, plan, node, resource, amount, left))


def _lacks(model: Model, plan: str, node: int, resource: int, amount: int, free: int) -> str:
    name, what = model.nodes.names[node], model.nodes.resources[resource]
    return f"{plan}: node {name} has {free} of {what} left, {amount} are needed"
