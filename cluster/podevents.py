"""What happens when a pod appears, changes or goes.

A watch delivers one pod's changes in order, but a relist may replay an older state. What
cannot be undone in the API server is therefore never undone here: a binding, an end, a
deletion mark, a lifted gate. An event that would is late and is ignored.

Every change goes the same way: work out the *placement* that the event leads to, compare
it with the present one, and if they differ take the pod off the books, rewrite what
accounting depends on, and put it back on them.
"""

from dataclasses import dataclass, replace
from typing import Final

from cluster import ledger
from cluster.effects import PodConfirmed
from cluster.events import PodGone, PodUpserted
from cluster.holds import Hold, HoldState
from cluster.ids import NO_ROW, GangKey, check_gang_key
from cluster.model import Model
from cluster.outcome import Outcome
from cluster.pods import PodFlag, PodState

_UID_BYTES: Final = 16
_INT32: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class _Placement:
    """A pod's state, the node it occupies (if any) and its hold (if any)."""

    state: PodState
    node: str | None = None
    hold: Hold | None = None


def upsert(model: Model, event: PodUpserted, out: Outcome, *, gate: str, now: float) -> None:
    """Take over what a pod says of itself. A repeated event changes nothing."""
    _check(event)
    row = model.directory.row(event.uid)
    if row is None:
        row = model.new_pod(event.uid)
        model.pods.state[row] = PodState.PENDING
        out.changed = True
    elif _is_late(model, row, event):
        return
    present = _present(model, row)
    wanted = _wanted(present, event, gate)
    gang = gang_key(model, row)
    differs = _kind_differs(model, row, event)
    if differs or wanted != present:
        _replace(model, row, event, present, wanted, out)
        differs = True
    if _write_rest(model, row, event, now) or differs:
        out.gang(gang)
        out.gang(gang_key(model, row))
    if wanted.state is PodState.BOUND:
        _note_bound(model, row, event, now)


def gone(model: Model, event: PodGone, out: Outcome, *, now: float) -> None:
    """Forget a pod and give back whatever it held. An unknown one was forgotten before."""
    row = model.directory.row(event.uid)
    if row is not None:
        remove(model, row, out, now=now)


def remove(model: Model, row: int, out: Outcome, *, now: float) -> None:
    """Forget the pod of a row (``gone``, and ``Snapshot.overlay``)."""
    out.gang(gang_key(model, row))
    present = _present(model, row)
    _take_off(model, row, present)
    if present.node is not None:
        out.freed()
        _review_left(model, present, out)
    model.set_gang(row, None, now)
    model.free_pod(row)


def gang_key(model: Model, row: int) -> GangKey | None:
    """Return the gang of a pod row."""
    gang = model.pods.gang[row]
    return None if gang == NO_ROW else model.gangs.keys[gang]


# --- placements -----------------------------------------------------------------------


def _present(model: Model, row: int) -> _Placement:
    node = model.pods.node[row]
    name = None if node == NO_ROW else model.nodes.names[node]
    return _Placement(PodState(model.pods.state[row]), name, model.holds[row])


def _wanted(present: _Placement, event: PodUpserted, gate: str) -> _Placement:
    """Return where an event leads; the states are drawn in ``cluster.pods``."""
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
    told = ledger.from_note(event.plan, event.gang)
    # The hold may have moved to a spare since: the pins tell whether the release is the same.
    if hold is None or hold.pins != told.pins:
        return told
    return replace(hold, state=HoldState.RELEASED, deadline=told.deadline, gang=event.gang)


def _replace(
    model: Model,
    row: int,
    event: PodUpserted,
    present: _Placement,
    wanted: _Placement,
    out: Outcome,
) -> None:
    _take_off(model, row, present)
    _write_kind(model, row, event)
    _put_on(model, row, event, wanted)
    if present.node is not None:
        if wanted.node != present.node or wanted.state is present.state:
            out.freed()
        _review_left(model, present, out)
    if wanted.node is not None:
        _review_joined(model, row, wanted, out)
    if present.hold is not None and wanted.state is PodState.BOUND and wanted.node is not None:
        out.add(PodConfirmed(event.uid, wanted.node, wanted.node in present.hold.pins))


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
        names = () if event.plan is None else event.plan.devices.get(wanted.node, ())
        model.devices.claim(row, node, names, spare=False)


def _review_left(model: Model, present: _Placement, out: Outcome) -> None:
    # Room came back where a released pod may have been waiting for just that.
    node = None if present.node is None else model.nodes.names.find(present.node)
    if node is not None and ledger.has_broken(model, node):
        ledger.review(model, node, out)


def _review_joined(model: Model, row: int, wanted: _Placement, out: Outcome) -> None:
    node = model.pods.node[row]
    traits = model.traits(model.pods.pod_class[row])
    if not model.nodes.alive[node]:
        # Lists may tell of a pod before its node; the next tick judges.
        model.unsettled.add(node)
        return
    full = any(model.nodes.free[resource][node] < 0 for resource, _ in traits.requests)
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
    return model.pods.has(row, PodFlag.TERMINATING) and not event.terminating


def _kind_differs(model: Model, row: int, event: PodUpserted) -> bool:
    # What accounting depends on: it may only be written while the pod is off the books.
    pods = model.pods
    if pods.pod_class[row] == NO_ROW or pods.priority[row] != event.priority:
        return True
    if pods.has(row, PodFlag.TERMINATING) != event.terminating:
        return True
    pod_class = model.classes[pods.pod_class[row]]
    labels = model.label_sets[pods.labels[row]]
    return not (
        (pod_class is event.pod_class or pod_class == event.pod_class)
        and (labels is event.labels or labels == event.labels)
    )


def _write_kind(model: Model, row: int, event: PodUpserted) -> None:
    pods = model.pods
    pods.priority[row] = event.priority
    pods.flags[row] = _flags(event)
    if (
        pods.pod_class[row] == NO_ROW
        or model.classes[pods.pod_class[row]] != event.pod_class
        or model.label_sets[pods.labels[row]] != event.labels
    ):
        model.set_kind(row, event.pod_class, event.labels)


def _write_rest(model: Model, row: int, event: PodUpserted, now: float) -> bool:
    # What nothing is summed over, and who may ask for the pod by name.
    pods = model.pods
    changed = False
    for column, value in (
        (pods.flags, _flags(event)),
        (pods.rank, event.rank),
        (pods.role, pods.roles.add(event.role)),
        (pods.queue, pods.queues.add(event.queue)),
    ):
        if column[row] != value:
            column[row] = value
            changed = True
    for times, seconds in ((pods.created, event.created), (pods.started, event.started)):
        if times[row] != seconds:
            times[row] = seconds
            changed = True
    unbound = pods.state[row] not in _SETTLED
    model.name_pod(row, f"{event.namespace}/{event.name}" if unbound and event.managed else "")
    gang = event.gang if event.managed else None
    if gang != gang_key(model, row):
        model.set_gang(row, gang, now)
        changed = True
    nominated = event.nominated if unbound else None
    old = pods.nominated[row]
    if nominated != (None if old == NO_ROW else model.nodes.names[old]):
        model.set_nominated(row, nominated)
        changed = True
    return changed


_SETTLED: Final = frozenset({PodState.BOUND, PodState.FINISHED})


def _note_bound(model: Model, row: int, event: PodUpserted, now: float) -> None:
    gang = model.pods.gang[row]
    if gang != NO_ROW:
        # A pod that was listed bound started in the past.
        model.gangs.first_bound(gang, min(event.started or now, now))
    if event.plan is not None and event.node is not None:
        node = model.pods.node[row]
        missing = set(event.plan.devices.get(event.node, ())) - set(
            model.devices.claimed(row, node)
        )
        if missing:
            model.devices.claim(row, node, sorted(missing), spare=False)


def _flags(event: PodUpserted) -> int:
    return (
        PodFlag.MANAGED.value * event.managed
        | PodFlag.OWNED.value * event.owned
        | PodFlag.PREEMPTIBLE.value * event.preemptible
        | PodFlag.TERMINATING.value * event.terminating
        | PodFlag.SUCCEEDED.value * (event.finished and event.succeeded)
    )


def _check(event: PodUpserted) -> None:
    who = f"pod {event.namespace}/{event.name}"
    if len(event.uid) != _UID_BYTES:
        raise ValueError(f"{who}: uid has {len(event.uid)} bytes; it must have {_UID_BYTES}")
    if event.node == "":
        raise ValueError(f"{who}: node is empty; use None for a pod that is not bound")
    for field, value in (("priority", event.priority), ("rank", event.rank)):
        if not -_INT32 <= value < _INT32:
            raise ValueError(f"{who}: {field} is {value}; it must fit in 32 bits")
    for resource, amount in event.pod_class.requests:
        if amount < 0:
            raise ValueError(f"{who}: requests[{resource!r}] is {amount}; it must be 0 or more")
    if event.gang is not None:
        check_gang_key(event.gang, who)
