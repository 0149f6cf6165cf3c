"""What happens when a pod appears, changes or goes.

A watch delivers one pod's changes in order, but a relist may replay an older state. What
cannot be undone in the API server is therefore never undone here: a binding, an end, a
deletion mark, a lifted gate. An event that would undo one is late and is ignored.

Every change takes the same steps: find the *placement* that the event leads to and compare it with
the present one. If they differ, remove the pod from all sums, change what the sums depend on, and
add it again.
"""

from dataclasses import replace
from typing import Final, NamedTuple

from muster.cluster.columns.uids import UID_BYTES
from muster.cluster.effects import CapacityFreed, EventOutcome, GangChanged, PodConfirmed
from muster.cluster.events import PlanNote, PodGone, PodUpserted
from muster.cluster.handlers import hotspares, ledger
from muster.cluster.ids import NO_ROW, GangKey, check_gang_key
from muster.cluster.model import Model
from muster.cluster.tables.holds import Hold, HoldState
from muster.cluster.tables.pods import STATES, PodFlag, PodState

_INT32: Final = 1 << 31

# As plain integers: arithmetic on enum members costs a microsecond each.
_MANAGED: Final = PodFlag.MANAGED.value
_OWNED: Final = PodFlag.OWNED.value
_PREEMPTIBLE: Final = PodFlag.PREEMPTIBLE.value
_TERMINATING: Final = PodFlag.TERMINATING.value
_SUCCEEDED: Final = PodFlag.SUCCEEDED.value
_STAYS: Final = PodFlag.STAYS.value
_FIRM: Final = PodFlag.FIRM.value
_SETTLED: Final = frozenset({PodState.BOUND.value, PodState.FINISHED.value})


class _Placement(NamedTuple):
    """A pod's state, the node it occupies (if any) and its hold (if any).

    A tuple, because two are made and compared for every pod event.
    """

    state: PodState
    node: str | None = None
    hold: Hold | None = None


_UNSEEN: Final = _Placement(PodState.PENDING)


def upsert(model: Model, event: PodUpserted, out: EventOutcome, *, gate: str, now: float) -> None:
    """Store a pod as it is now. A repeated event changes nothing."""
    row = model.directory.row(event.uid)
    if row is not None and _is_late(model, row, event):
        return
    same_kind = row is not None and _same_kind(model, row, event)
    check(model, event, same_kind=same_kind)
    if row is None:
        row = model.new_pod(event.uid)
        present, gang = _UNSEEN, None
    else:
        present, gang = _present(model, row), gang_key(model, row)
    wanted = _wanted(present, event, gate)
    changed = not same_kind or wanted != present
    if changed:
        _take_off(model, row, present)
        if not same_kind:
            _write_kind(model, row, event)
        _put_on(model, row, event, wanted)
        _review(model, row, event, present, wanted, out)
    if _write_rest(model, row, event, now) or changed:
        out.changed = True
        for key in (gang, event.gang if event.managed else None):
            if key is not None:
                out.effects.append(GangChanged(key))
        if model.standby:
            _settle(model, gang, out)
    if wanted.state is PodState.BOUND:
        _note_bound(model, row, event, now)


def gone(model: Model, event: PodGone, out: EventOutcome, *, now: float) -> None:
    """Forget a pod and free what it held. An unknown one was forgotten before."""
    row = model.directory.row(event.uid)
    if row is not None:
        remove(model, row, out, now=now)


def remove(model: Model, row: int, out: EventOutcome, *, now: float) -> None:
    """Forget the pod of a row (``gone``, and ``Snapshot.overlay``)."""
    if model.pods.state[row] == PodState.STANDBY:
        ledger.give_up(model, row, out)
        return
    out.gang(gang_key(model, row))
    present = _present(model, row)
    _take_off(model, row, present)
    if present.node is not None:
        out.effects.append(CapacityFreed())
        ledger.review_left(model, present.node, out)
    gang = gang_key(model, row)
    model.set_gang(row, None, now)
    model.free_pod(row)
    if model.standby:
        _settle(model, gang, out)


def _settle(model: Model, key: GangKey | None, out: EventOutcome) -> None:
    """Check the hot spares of a gang that may have lost its last member."""
    gang = None if key is None else model.gangs.keys.find(key)
    if gang is not None:
        hotspares.settle(model, gang, out)


def move(model: Model, row: int, node: int) -> None:
    """Bind a pod to another node, or (``NO_ROW``) let it wait for a plan.

    For ``Snapshot.overlay``; no event does this. The pod must be bound or waiting, without a hold.
    """
    if model.pods.node[row] != NO_ROW:
        model.leave_node(row)
        model.pods.node[row] = NO_ROW
    model.pods.state[row] = PodState.WAITING if node == NO_ROW else PodState.BOUND
    if node != NO_ROW:
        model.occupy(row, node)
        model.devices.claim(row, node, (), spare=False)


def gang_key(model: Model, row: int) -> GangKey | None:
    """Return the gang of a pod row."""
    gang = model.pods.gang[row]
    return None if gang == NO_ROW else model.gangs.keys[gang]


# --- placements -----------------------------------------------------------------------


def _present(model: Model, row: int) -> _Placement:
    node = model.pods.node[row]
    name = None if node == NO_ROW else model.nodes.names[node]
    return _Placement(STATES[model.pods.state[row]], name, model.holds[row])


def _wanted(present: _Placement, event: PodUpserted, gate: str) -> _Placement:
    """Return where an event leads; the states are drawn in ``muster.cluster.tables.pods``."""
    if event.finished:
        return _Placement(PodState.FINISHED)
    if event.node is not None:
        return _Placement(PodState.BOUND, event.node)
    if not event.managed or event.gang is None:
        return _Placement(PodState.PENDING)
    if event.terminating:
        return _Placement(PodState.BLOCKED)
    hold = _wanted_hold(present.hold, event, gate)
    if hold is not None:
        state = PodState.ASSUMED if hold.state is HoldState.ASSUMED else PodState.RELEASED
        return _Placement(state, hold.node, hold)
    return _Placement(PodState.BLOCKED if event.gates - {gate} else PodState.WAITING)


def _wanted_hold(hold: Hold | None, event: PodUpserted, gate: str) -> Hold | None:
    if event.plan is None or gate in event.gates:
        return hold if hold is None or hold.gang == event.gang else replace(hold, gang=event.gang)
    noted = Hold.of_note(event.plan, event.gang)
    # The hold may have moved to a spare since, so its node does not show whether the
    # release is the one that is known.
    if hold is None or (hold.plan_id, hold.pins) != (noted.plan_id, noted.pins):
        return noted
    return replace(hold, state=HoldState.RELEASED, deadline=noted.deadline, gang=event.gang)


def _take_off(model: Model, row: int, present: _Placement) -> None:
    if present.hold is not None:
        ledger.drop(model, row, PodState.PENDING)
    elif present.node is not None:
        model.leave_node(row)


def _put_on(model: Model, row: int, event: PodUpserted, wanted: _Placement) -> None:
    if wanted.hold is not None:
        ledger.enter(model, row, wanted.hold)
        return
    model.pods.state[row] = wanted.state
    if wanted.node is not None:
        node = model.node_row(wanted.node)
        model.occupy(row, node)
        model.devices.claim(row, node, planned_devices(event.plan, wanted.node), spare=False)


def _review(
    model: Model,
    row: int,
    event: PodUpserted,
    present: _Placement,
    wanted: _Placement,
    out: EventOutcome,
) -> None:
    # Report what moved, and check the holds on both nodes.
    if present.node is not None:
        moved = wanted.node != present.node or wanted.state is present.state
        if moved or _gives_devices_back(present.hold, wanted.hold):
            out.effects.append(CapacityFreed())
        ledger.review_left(model, present.node, out)
    if wanted.node is not None:
        _review_joined(model, row, wanted, out)
    if present.hold is not None and wanted.state is PodState.BOUND and wanted.node is not None:
        out.effects.append(PodConfirmed(event.uid, wanted.node, wanted.node in present.hold.pins))


def _gives_devices_back(before: Hold | None, after: Hold | None) -> bool:
    # Devices on a spare node are firm until the pod is bound: another pod may wait for them.
    return before is not None and after is None and any(map(before.devices.get, before.spares))


def _review_joined(model: Model, row: int, wanted: _Placement, out: EventOutcome) -> None:
    node = model.pods.node[row]
    traits = model.traits(model.pods.pod_class[row])
    if not model.nodes.alive[node]:
        if wanted.hold is not None:
            model.unsettled.add(node)  # lists may have a pod before its node: a tick checks it
        return
    full = model.is_short(node, traits)
    if full or wanted.hold is not None or traits.host_ports:
        ledger.review(model, node, out)
    if full:
        ledger.report_overcommit(model, node, out)


# --- columns --------------------------------------------------------------------------


def _is_late(model: Model, row: int, event: PodUpserted) -> bool:
    state = model.pods.state[row]
    if state == PodState.FINISHED and not event.finished:
        return True
    if state == PodState.BOUND and event.node is None and not event.finished:
        return True
    return not event.terminating and bool(model.pods.flags[row] & _TERMINATING)


def _same_kind(model: Model, row: int, event: PodUpserted) -> bool:
    # What the sums depend on: it may only be written while the pod is in none of them.
    pods = model.pods
    if pods.priority[row] != event.priority:
        return False
    if bool(pods.flags[row] & _TERMINATING) is not event.terminating:
        return False
    pod_class = model.classes[pods.pod_class[row]]
    labels = model.label_sets[pods.labels[row]]
    return (pod_class is event.pod_class or pod_class == event.pod_class) and (
        labels is event.labels or labels == event.labels
    )


def _write_kind(model: Model, row: int, event: PodUpserted) -> None:
    pods, flags = model.pods, flags_of(event)
    if pods.priority[row] != event.priority:
        pods.priority[row] = event.priority
    pods.flags[row] = flags
    if (
        pods.pod_class[row] == NO_ROW
        or model.classes[pods.pod_class[row]] != event.pod_class
        or model.label_sets[pods.labels[row]] != event.labels
    ):
        model.set_kind(row, event.pod_class, event.labels)


def _write_rest(model: Model, row: int, event: PodUpserted, now: float) -> bool:
    # What no sum depends on, and whether the pod can be found by name. Columns are only
    # written where they differ: a write may have to copy a page.
    pods, flags, rank = model.pods, flags_of(event), rank_of(event.rank, event.plan)
    role, queue = pods.roles.add(event.role), pods.queues.add(event.queue)
    changed = False
    for column, number in ((pods.rank, rank), (pods.role, role), (pods.queue, queue)):
        if column[row] != number:
            column[row] = number
            changed = True
            if model.charges.is_used:
                model.touched.add(row)
    for times, seconds in (
        (pods.created, event.created),
        (pods.started, event.started),
        (pods.ends_by, event.ends_by),
    ):
        if times[row] != seconds:
            times[row] = seconds
            changed = True
    if pods.flags[row] != flags:
        pods.flags[row] = flags
        changed = True
    return _write_names(model, row, event, now) or changed


def _write_names(model: Model, row: int, event: PodUpserted, now: float) -> bool:
    pods = model.pods
    unbound = pods.state[row] not in _SETTLED
    name = f"{event.namespace}/{event.name}" if unbound and event.managed else ""
    model.name_pod(row, name)
    changed = model.set_gang(row, event.gang if event.managed else None, now)
    nominated = event.nominated if unbound else None
    old = pods.nominated[row]
    if nominated != (None if old == NO_ROW else model.nodes.names[old]):
        model.set_nominated(row, nominated)
        changed = True
    return changed


def _note_bound(model: Model, row: int, event: PodUpserted, now: float) -> None:
    gang = model.pods.gang[row]
    if gang != NO_ROW:
        # A pod that was listed bound started in the past.
        model.gangs.first_bound(gang, min(event.started or now, now))
    if event.plan is not None and event.node is not None:
        take_devices(model, row, planned_devices(event.plan, event.node))


def planned_devices(plan: PlanNote | None, node: str) -> tuple[str, ...]:
    """Return the devices that a pod's plan names on a node."""
    return () if plan is None else tuple(plan.devices.get(node, ()))


def take_devices(model: Model, row: int, named: tuple[str, ...]) -> None:
    """Store the devices that a bound pod's plan names on its node."""
    node = model.pods.node[row]
    if named and model.devices.named(row, node) != named:
        model.devices.take_names(row, node, named)


def rank_of(rank: int, plan: PlanNote | None) -> int:
    """Return a pod's own index, or the number from its plan if it has none."""
    return rank if rank >= 0 or plan is None else plan.rank


def flags_of(event: PodUpserted) -> int:
    """Return a pod's entry in the ``flags`` column."""
    return (
        (_MANAGED if event.managed else 0)
        | (_OWNED if event.owned else 0)
        | (_PREEMPTIBLE if event.preemptible else 0)
        | (_TERMINATING if event.terminating else 0)
        | (_SUCCEEDED if event.finished and event.succeeded else 0)
        | (_STAYS if event.stays else 0)
        | (_FIRM if event.firm else 0)
    )


def check(model: Model, event: PodUpserted, *, same_kind: bool = False) -> None:
    """Raise ``ValueError`` for a value that no pod can have, before anything is written.

    ``same_kind``: priority and requests are those of a pod that was checked already.
    """
    if len(event.uid) != UID_BYTES:
        raise _bad(event, f"uid has {len(event.uid)} bytes; it must have {UID_BYTES}")
    if event.node == "":
        raise _bad(event, "node is empty; use None for a pod that is not bound")
    if not -_INT32 <= event.rank < _INT32:
        raise _bad(event, f"rank is {event.rank}; it must fit in 32 bits")
    if event.gang is not None and model.gangs.keys.find(event.gang) is None:
        check_gang_key(event.gang, f"pod {event.namespace}/{event.name}")
    if same_kind:
        return
    if not -_INT32 <= event.priority < _INT32:
        raise _bad(event, f"priority is {event.priority}; it must fit in 32 bits")
    for resource, amount in event.pod_class.requests:
        if amount < 0:
            raise _bad(event, f"requests[{resource!r}] is {amount}; it must be 0 or more")


def _bad(event: PodUpserted, what: str) -> ValueError:
    return ValueError(f"pod {event.namespace}/{event.name}: {what}")
