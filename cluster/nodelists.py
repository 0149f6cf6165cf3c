"""Many nodes at once: what the first list of a cluster tells.

One by one, a node costs some tens of microseconds, half of them for its labels, a column each.
Here a few dozen are entered together, column by column, and the state is the same as if each
had come by itself::

    NodesListed ──► are all of them new, and do they end the table? ──no──► nodeevents.upsert, each
                                   │ yes
                                   ▼
              rows in one stretch; each column of flags, amounts and labels in one write

Nobody stands on a node that nobody has named yet, so there is nothing to judge anew.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from cluster import nodeevents
from cluster.events import NodesListed, NodeUpserted
from cluster.model import Model
from cluster.nodes import AMOUNT_LIMIT
from cluster.outcome import Outcome


def enter(model: Model, event: NodesListed, out: Outcome) -> None:
    """Take over nodes of a list. Raises ``ValueError`` for one that no cluster can have."""
    for node in event.nodes:
        nodeevents.check(node)
    if not _are_plain(model, event.nodes):
        for node in event.nodes:
            nodeevents.upsert(model, node, out)
        return
    first = _new_rows(model, [node.name for node in event.nodes])
    _write(model, event.nodes, first)
    model.node_changes += len(event.nodes)
    out.changed = True
    if any(node.ready and not node.unschedulable for node in event.nodes):
        out.freed()


def _are_plain(model: Model, nodes: Sequence[NodeUpserted]) -> bool:
    names, known = {node.name for node in nodes}, model.nodes.names
    if not nodes or known.has_free_ids or len(names) < len(nodes):
        return False
    return all(known.find(name) is None for name in names) and not any(
        node.allocations for node in nodes
    )


def _new_rows(model: Model, names: Sequence[str]) -> int:
    """Return the first of the nodes' rows."""
    first = model.nodes.names.extend(names)
    model.nodes.grow(first + len(names))
    model.topology_changed()
    if first + len(names) > model.devices.node_rows:
        model.devices.grow_nodes(model.nodes.alive.capacity)
    return first


def _write(model: Model, nodes: Sequence[NodeUpserted], first: int) -> None:
    table = model.nodes
    table.alive.put(first, np.ones(len(nodes), dtype=np.bool_))
    table.ready.put(first, np.array([node.ready for node in nodes]))
    table.unschedulable.put(first, np.array([node.unschedulable for node in nodes]))
    taints = [node.taints for node in nodes]
    ids = {each: table.taint_sets.acquire(each, n) for each, n in Counter(taints).items()}
    table.taint_set.put(first, np.array([ids[each] for each in taints], dtype=np.int32))
    table.labels.extend(first, [node.labels for node in nodes])
    for name in _in_order(_counted(node) for node in nodes):
        amounts = [min(node.allocatable.get(name, 0), AMOUNT_LIMIT) for node in nodes]
        number, column = table.resource(name), np.array(amounts, dtype=np.int64)
        table.allocatable[number].put(first, column)
        table.free[number].put(first, column)  # nothing is used of what is new
    for row, node in enumerate(nodes, first):
        if node.devices:
            model.devices.publish(row, node.devices, ())


def _counted(node: NodeUpserted) -> Iterable[str]:
    """Return the resources that a node has something of; nothing makes no column."""
    return (name for name, amount in node.allocatable.items() if amount)


def _in_order(names: Iterable[Iterable[str]]) -> Iterable[str]:
    """Return distinct names, the first seen first: ids are given in this order."""
    return dict.fromkeys(name for some in names for name in some)
