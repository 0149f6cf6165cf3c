"""What happens when a node appears, changes or goes."""

from collections.abc import Mapping

from cluster import ledger
from cluster.events import NodeGone, NodeUpserted
from cluster.model import Model
from cluster.outcome import Outcome


def upsert(model: Model, event: NodeUpserted, out: Outcome) -> None:
    """Take over what a node says of itself. A repeated event (a heartbeat) changes nothing."""
    _check(event)
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
        out.freed()
    ledger.review(model, row, out)
    ledger.report_overcommit(model, row, out)


def gone(model: Model, event: NodeGone, out: Outcome) -> None:
    """Make a node's row dead. Its pods keep theirs until they go themselves."""
    row = model.nodes.names.find(event.name)
    if row is None or not model.nodes.alive[row]:
        return
    out.changed = True
    model.nodes.refer(row, 1)  # the row must outlive what is done to its last pod
    if model.devices.by_node[row]:
        model.devices.publish(row, ())
    model.nodes.clear(row)
    model.topology_changed()
    ledger.review(model, row, out)
    model.nodes.refer(row, -1)


def _write(model: Model, row: int, event: NodeUpserted) -> bool | None:
    # Returns None when nothing differed, else whether the node may now take more than
    # before: only then is it worth another look for those who wait.
    nodes = model.nodes
    known = nodes.alive[row]
    was_usable = known and nodes.ready[row] and not nodes.unschedulable[row]
    flags = (nodes.alive[row], nodes.ready[row], nodes.unschedulable[row])
    same_flags = flags == (True, event.ready, event.unschedulable)
    same_taints = known and nodes.taints(row) == event.taints
    same_labels = not nodes.labels.differs(row, event.labels)
    same_devices = not model.devices.differs(row, event.devices)
    old = nodes.capacity_of(row)
    new = {name: amount for name, amount in event.allocatable.items() if amount}
    if known and same_flags and same_taints and same_labels and same_devices and old == new:
        return None
    if not same_flags:
        nodes.set_flags(row, alive=True, ready=event.ready, unschedulable=event.unschedulable)
    if not same_taints:
        nodes.set_taints(row, event.taints)
    if not same_labels:
        nodes.labels.set(row, event.labels)
    if old != new:
        nodes.set_capacity(row, new)
    if not same_devices:
        model.devices.publish(row, event.devices)
    usable = event.ready and not event.unschedulable
    improved = not (was_usable or not usable) or not (same_taints and same_labels and same_devices)
    return usable and (improved or _grew(old, new))


def _grew(old: Mapping[str, int], new: Mapping[str, int]) -> bool:
    return any(amount > old.get(name, 0) for name, amount in new.items())


def _check(event: NodeUpserted) -> None:
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
