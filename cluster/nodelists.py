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
from collections.abc import Sequence
from itertools import chain

import numpy as np

from cluster import nodeevents
from cluster.events import NodesListed, NodeUpserted
from cluster.model import Model
from cluster.outcome import Outcome


def enter(model: Model, event: NodesListed, out: Outcome) -> None:
    """Take over nodes of a list.

    Raises ``ValueError`` for one that no cluster can have, before any is entered.
    """
    for node in event.nodes:
        nodeevents.check(node)
    if not _are_plain(model, event.nodes):
        for node in event.nodes:
            nodeevents.upsert(model, node, out)
        return
    _write(model, event.nodes, model.node_rows([node.name for node in event.nodes]))
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


def _write(model: Model, nodes: Sequence[NodeUpserted], first: int) -> None:
    table = model.nodes
    table.alive.put(first, np.ones(len(nodes), dtype=np.bool_))
    table.ready.put(first, np.array([node.ready for node in nodes]))
    table.unschedulable.put(first, np.array([node.unschedulable for node in nodes]))
    taints = [node.taints for node in nodes]
    ids = {each: table.taint_sets.acquire(each, n) for each, n in Counter(taints).items()}
    table.taint_set.put(first, np.array([ids[each] for each in taints], dtype=np.int32))
    table.labels.extend(first, [node.labels for node in nodes])
    # Nodes of a size share the very mapping.
    sizes = {id(node.allocatable): node for node in nodes}
    capacity = {size: nodeevents.capacity_of(node) for size, node in sizes.items()}
    amounts = [capacity[id(node.allocatable)] for node in nodes]
    for name in dict.fromkeys(chain.from_iterable(amounts)):  # ids as if one by one
        column = np.array([some.get(name, 0) for some in amounts], dtype=np.int64)
        number = table.resource(name)
        table.allocatable[number].put(first, column)
        table.free[number].put(first, column)  # nothing is used of what is new
    for row, node in enumerate(nodes, first):
        if node.devices:
            model.devices.publish(row, node.devices, ())
