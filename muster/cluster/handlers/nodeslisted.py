"""Many nodes at once: the first list of a cluster.

One by one, a node costs some tens of microseconds, half of them for its labels, a column each.
Here a few hundred are entered together, column by column, with the same state as if each had come
by itself::

    NodesListed ──► are all of them new, and do they end the table? ──no──► nodeevents.upsert, each
                                   │ yes
                                   ▼
              rows in one stretch; each column of flags, amounts and labels in one write

No known pod names a new node, so there is no hold to check.
"""

from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.texts import ABSENT
from muster.cluster.effects import CapacityFreed, EventOutcome
from muster.cluster.events import NodesListed
from muster.cluster.handlers import nodeevents
from muster.cluster.model import Model

T = TypeVar("T", bound=np.generic)


def enter(model: Model, event: NodesListed, out: EventOutcome) -> None:
    """Store nodes of a list.

    Raises ``ValueError`` for one that no cluster can have, before any is stored.
    """
    for kind in event.kinds:
        nodeevents.check(kind)
    if "" in event.names:
        nodeevents.check(event.node(event.names.index("")))
    if not _are_plain(model, event):
        for place in range(len(event.names)):
            nodeevents.upsert(model, event.node(place), out)
        return
    _write(model, event, model.node_rows(event.names))
    model.node_changes += len(event.names)
    out.changed = True
    if any(node.ready and not node.unschedulable for node in event.kinds):
        out.effects.append(CapacityFreed())


def _are_plain(model: Model, event: NodesListed) -> bool:
    known = model.nodes.names
    if not event.names or known.has_free_ids or len(set(event.names)) < len(event.names):
        return False
    unknown = bool((known.find_all(event.names) == ABSENT).all())
    return unknown and not any(node.allocations for node in event.kinds)


def _write(model: Model, event: NodesListed, first: int) -> None:
    table, kinds, kind = model.nodes, event.kinds, event.kind
    users = np.bincount(kind, minlength=len(kinds)).tolist()

    def each(values: NDArray[T]) -> NDArray[T]:
        return values[kind]

    table.alive.put(first, np.ones(len(kind), dtype=np.bool_))
    table.ready.put(first, each(np.array([node.ready for node in kinds])))
    table.unschedulable.put(first, each(np.array([node.unschedulable for node in kinds])))
    taints = [table.taint_sets.acquire(n.taints, u) for n, u in zip(kinds, users, strict=True)]
    table.taint_set.put(first, each(np.array(taints, dtype=np.int32)))
    table.labels.extend(first, event.labels)
    amounts = [nodeevents.capacity_of(node) for node in kinds]
    for name in dict.fromkeys(chain.from_iterable(amounts)):  # ids in the same order as one by one
        column = each(np.array([some.get(name, 0) for some in amounts], dtype=np.int64))
        number = table.resource(name)
        table.allocatable[number].put(first, column)
        table.free[number].put(first, column)  # nothing is used on new nodes
    for place in np.flatnonzero(each(np.array([bool(node.devices) for node in kinds]))).tolist():
        model.devices.publish(first + place, kinds[kind[place]].devices, ())
