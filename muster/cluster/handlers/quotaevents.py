"""What happens when queues change, and what pods are charged to them.

::

    occupy, vacate, another gang, another queue ──► touched rows
                                                        │ at the end of the event
                                                        ▼
    what the pod costs now  ≠  its bill ──► charge the one, give back the other

A pod is charged while it occupies a node, whether it is held, released or bound; a hot spare is,
too. System pods are never charged: those of ``kube-system``, and those with a priority that only
the system's classes have (Volcano's conformance plugin, pkg/scheduler/plugins/conformance).
"""

from typing import Final

from muster.cluster.effects import EventOutcome, QueuesChanged
from muster.cluster.events import CapacityMeasured, QueueGone, QueueUpserted
from muster.cluster.ids import NO_ROW
from muster.cluster.model import Model
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.charges import Bill
from muster.cluster.quota.flavors import flavors_of

SYSTEM_NAMESPACE: Final = "kube-system"
SYSTEM_PRIORITY: Final = 2_000_000_000
"""Only ``system-cluster-critical`` and ``system-node-critical`` may exceed a thousand million."""


def upserted(model: Model, event: QueueUpserted, out: EventOutcome) -> None:
    """Store a queue; the first one has every pod charged."""
    if model.queues.get(event.spec.name) == event:
        return
    model.queues = {**model.queues, event.spec.name: event}
    if not model.charges.is_used:
        restore(model)
    elif model.charges.put(event.spec, event.spellings, event.groups):
        _touch_all(model)
    out.changed = True
    out.effects.append(QueuesChanged())


def measured(model: Model, event: CapacityMeasured) -> None:
    """Entitle the roots that stand for the cluster to what the nodes have."""
    model.charges.measure(event.amounts)


def restore(model: Model) -> None:
    """Charge every pod: there are queues, and nobody was charged so far."""
    for event in model.queues.values():
        model.charges.put(event.spec, event.spellings, event.groups)
    if model.queues:
        _touch_all(model)
        settle(model, EventOutcome())


def _touch_all(model: Model) -> None:
    """Have it looked at what every pod on a node is charged."""
    model.touched.update(row for row in model.pods.live() if model.pods.node[row] != NO_ROW)


def relabelled(model: Model, node: int) -> None:
    """Have it looked at what the pods of a node are charged: it may be of other flavors now."""
    if model.charges.flavors:
        model.touched.update(model.pods_on(node))


def gone(model: Model, event: QueueGone, out: EventOutcome) -> None:
    """Forget a queue."""
    if event.name in model.queues:
        model.queues = {name: one for name, one in model.queues.items() if name != event.name}
        model.charges.remove(event.name)
        out.changed = True
        out.effects.append(QueuesChanged())


def settle(model: Model, out: EventOutcome) -> None:
    """Charge the pods of touched rows with what they cost now."""
    if model.pods.count > model.bills.capacity:
        model.bills.grow(model.pods.count)
    moved = [row for row in sorted(model.touched) if _settle(model, row)]
    model.touched.clear()
    if moved:
        out.effects.append(QueuesChanged())


def _settle(model: Model, row: int) -> bool:
    """Charge one pod; returns whether its room is charged to somebody else than before."""
    old, wanted = model.bills[row], bill(model, row)
    new = NO_ROW if wanted is None else model.bill_kinds.acquire(wanted)
    before = None if old == NO_ROW else model.bill_kinds[old]
    if new != old:
        if wanted is not None:
            model.charges.charge(wanted)
        if before is not None:
            model.charges.give_back(before)
        model.bills[row] = new
    if old != NO_ROW:
        model.bill_kinds.release(old)
    return before is not None and wanted is not None and before.user != wanted.user


def bill(model: Model, row: int) -> Bill | None:
    """Return what a pod costs now, ``None``: nothing."""
    pods = model.pods
    if pods.node[row] == NO_ROW or pods.priority[row] >= SYSTEM_PRIORITY:
        return None
    namespace = model.label_sets[pods.labels[row]].namespace
    if namespace == SYSTEM_NAMESPACE:
        return None
    requests = model.classes[pods.pod_class[row]].requests
    return Bill(_user(model, row, namespace), requests, _flavors(model, pods.node[row]))


def _flavors(model: Model, node: int) -> tuple[str, ...]:
    """Return the flavors of a node."""
    known = model.charges.flavors
    if not known:
        return ()
    keys = {key for flavor in known for key, _ in flavor.labels}
    return flavors_of(known, {key: model.nodes.labels.value(node, key) for key in keys})


def _user(model: Model, row: int, namespace: str) -> QueueUser:
    gang = model.pods.gang[row]
    text = model.pods.queues[model.pods.queue[row]]
    if gang == NO_ROW:
        return QueueUser("", namespace, text)
    dialect = model.gangs.keys[gang].split("/", 1)[0]
    return QueueUser(dialect, namespace, model.gangs.queue(gang) or text)
