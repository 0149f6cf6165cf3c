"""What happens when a node appears, changes or goes."""

from collections.abc import Mapping

from muster.cluster.effects import CapacityFreed, DevicesDisturbed, EventOutcome
from muster.cluster.events import NodeGone, NodeUpserted
from muster.cluster.handlers import ledger, quotaevents
from muster.cluster.model import Model
from muster.cluster.tables.nodes import AMOUNT_LIMIT


def upsert(model: Model, event: NodeUpserted, out: EventOutcome) -> None:
    """Store a node as it is now. A repeated event (a heartbeat) changes nothing."""
    check(event)
    row = model.node_row(event.name)
    known = model.nodes.alive[row]
    before = {key: model.nodes.labels.value(row, key) for key in model.levels}
    better = _write(model, row, event)
    if better is None:
        return
    out.changed = True
    if not known or before != {key: model.nodes.labels.value(row, key) for key in model.levels}:
        model.topology_changed()
    if better:
        out.effects.append(CapacityFreed())
    ledger.review(model, row, out)
    ledger.report_overcommit(model, row, out)


def gone(model: Model, event: NodeGone, out: EventOutcome) -> None:
    """Make a node's row dead. Its pods stay until their own events remove them."""
    row = model.nodes.names.find(event.name)
    if row is None or not model.nodes.alive[row]:
        return
    out.changed = True
    model.node_changes += 1
    model.nodes.refer(row, 1)  # the row must not be freed while its last pod is handled
    if model.devices.differs(row, ()) or model.devices.given.differs(row, {}):
        model.devices.publish(row, (), (), {})
        out.effects.append(DevicesDisturbed(event.name))
    model.nodes.clear(row)
    quotaevents.relabelled(model, row)
    model.topology_changed()
    ledger.review(model, row, out)
    model.nodes.refer(row, -1)


def _write(model: Model, row: int, event: NodeUpserted) -> bool | None:
    # Returns None when nothing differed, else whether the node may now take a pod that it
    # could not take before: only then are waiting gangs tried again.
    nodes = model.nodes
    old_flags = (nodes.alive[row], nodes.ready[row], nodes.unschedulable[row])
    old_taints = nodes.taints(row) if old_flags[0] else None
    old_capacity = nodes.capacity_of(row)
    capacity = capacity_of(event)
    same_labels = not nodes.labels.differs(row, event.labels)
    same_devices = not model.devices.differs(row, event.devices)
    same_given = not model.devices.given.differs(row, event.allocations)
    flags = (True, event.ready, event.unschedulable)
    same = same_labels and same_devices and old_capacity == capacity
    same = same and old_flags == flags and old_taints == event.taints
    if same and same_given:
        return None
    model.node_changes += not same
    nodes.set_flags(row, alive=True, ready=event.ready, unschedulable=event.unschedulable)
    if old_taints != event.taints:
        nodes.set_taints(row, event.taints)
    if not same_labels:
        nodes.labels.set(row, event.labels)
        quotaevents.relabelled(model, row)
    if old_capacity != capacity:
        nodes.set_capacity(row, capacity)
    otherwise_used = False
    if not (same_devices and same_given):
        occupants = model.pods_on(row)
        otherwise_used = model.devices.publish(row, event.devices, occupants, event.allocations)
    usable = (True, True, False)
    return flags == usable and (
        old_flags != usable
        or not (same_labels and same_devices)
        or otherwise_used
        or not set(old_taints or ()) <= set(event.taints)
        or _grew(old_capacity, capacity)
    )


def capacity_of(event: NodeUpserted) -> dict[str, int]:
    """Return the allocatable amounts of a node that are not zero: zeros need no column."""
    return {n: min(amount, AMOUNT_LIMIT) for n, amount in event.allocatable.items() if amount}


def _grew(old: Mapping[str, int], new: Mapping[str, int]) -> bool:
    return any(amount > old.get(name, 0) for name, amount in new.items())


def check(event: NodeUpserted) -> None:
    """Raise ``ValueError`` for values that no node can have."""
    if not event.name:
        raise ValueError("NodeUpserted.name is empty; a node needs a name")
    for name, amount in event.allocatable.items():
        if amount < 0:
            raise ValueError(
                f"node {event.name}: allocatable[{name!r}] is {amount}; it must be 0 or more"
            )
    names = [device.name for device in event.devices]
    if len(set(names)) < len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"node {event.name}: device {double!r} is published twice; "
            "device names must be unique on a node"
        )
