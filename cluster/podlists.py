"""Many bound pods at once: what a list tells of a cluster that runs.

One by one, a pod costs some tens of microseconds, and a million of them most of a minute. Here
a few hundred are entered together, and the state is the same as if each had come by itself::

    PodsBound ──► is every pod plain, new, and room for all? ──no──► podevents.upsert, each
                                   │ yes
                                   ▼
           columns in one stretch of rows; sums per node; each node's list of pods

*Plain* is a pod that nothing has to be decided for: bound, not Muster's, without host ports,
anti-affinity or devices. What is left of ``podevents.upsert`` then is sums, and sums do not
depend on the order. Nothing is written before it is known that all are (rows of nodes and
resources aside, which the other way would make just so).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from struct import Struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cluster import podevents
from cluster.asks import asks_of
from cluster.events import PodsBound, PodUpserted
from cluster.ids import PodUid
from cluster.model import Model
from cluster.outcome import Outcome
from cluster.pods import PodState

_UID_BYTES: Final = 16
_ROW: Final = np.dtype(np.int32)  # as ``Model`` packs the pods of a node
_LAST: Final = Struct("i")


@dataclass(frozen=True, slots=True)
class _Crowd:
    """Where pods stand. ``of``: int[n], each pod's place in ``nodes``, distinct and ascending.

    ``demand``: resource id → int64[nodes], what the pods ask for together.
    """

    nodes: NDArray[np.intp]
    of: NDArray[np.intp]
    demand: dict[int, NDArray[np.int64]]


def enter(model: Model, event: PodsBound, out: Outcome, *, gate: str, now: float) -> None:
    """Take over the pods of a list. Raises ``ValueError`` for a kind that no pod can have."""
    _check(model, event)
    crowd = _crowd(model, event) if _are_plain(model, event) else None
    if crowd is None:
        for pod in event.pods():
            podevents.upsert(model, pod, out, gate=gate, now=now)
        return
    first = _new_rows(model, event.uids)
    _write(model, event, first)
    _occupy(model, event, crowd, first)
    out.gang(None)


def _check(model: Model, event: PodsBound) -> None:
    for kind in event.kinds:
        podevents.check(model, replace(kind, uid=event.uids[0], node=event.nodes[0]))
    for place, uid in enumerate(event.uids):
        if len(uid) != _UID_BYTES or not event.nodes[place]:
            like = event.kinds[event.kind[place]]
            podevents.check(model, replace(like, uid=uid, node=event.nodes[place]))


def _are_plain(model: Model, event: PodsBound) -> bool:
    if model.pods.has_free_rows or any(True for _ in model.matches.table.keys()):  # noqa: SIM118
        return False
    return all(map(_is_plain, event.kinds)) and model.directory.are_new(event.uids)


def _is_plain(kind: PodUpserted) -> bool:
    asks = kind.pod_class
    simple = not (asks.host_ports or asks.pod_anti_affinity or asks_of(asks))
    return simple and not kind.managed and not kind.finished and kind.plan is None


def _crowd(model: Model, event: PodsBound) -> _Crowd | None:
    """Return where the pods stand; ``None`` if that takes more than adding up."""
    found = map(model.nodes.names.find, event.nodes)
    rows = [
        model.node_row(name) if row is None else row
        for row, name in zip(found, event.nodes, strict=True)
    ]
    if model.devices.given.to_any(event.uids, rows):
        return None
    nodes, of = np.unique(np.array(rows, dtype=np.intp), return_inverse=True)
    demand: dict[int, NDArray[np.int64]] = {}
    for number, kind in enumerate(event.kinds):
        count = np.bincount(of[event.kind == number], minlength=len(nodes))
        for resource, amount in model.requests_of(kind.pod_class):
            before = demand.get(resource)
            more = count * np.int64(amount)
            demand[resource] = more if before is None else before + more
    alive = model.nodes.alive.at(nodes)
    for resource, amounts in demand.items():
        left = model.nodes.free[resource].at(nodes) - amounts
        if bool((alive & (left < 0) & (amounts > 0)).any()):
            return None
    return _Crowd(nodes, of, demand)


def _new_rows(model: Model, uids: Sequence[PodUid]) -> int:
    """Return the first of the pods' rows."""
    first = model.pods.extend(uids)
    if model.pods.count > model.holds.capacity:
        model.holds.grow(model.pods.count)
    model.directory.add_all(uids, first)
    return first


def _write(model: Model, event: PodsBound, first: int) -> None:
    pods, kinds, kind = model.pods, event.kinds, event.kind
    users = np.bincount(kind, minlength=len(kinds)).tolist()
    pairs = list(zip(kinds, users, strict=True))

    def each(values: list[int]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = np.array(values, dtype=np.int64)[kind]
        return found

    pods.state.put(first, np.full(len(kind), PodState.BOUND, dtype=np.int8))
    pods.flags.put(first, each([podevents.flags_of(one) for one in kinds]))
    pods.pod_class.put(first, each([model.classes.acquire(k.pod_class, n) for k, n in pairs]))
    pods.labels.put(first, each([model.label_sets.acquire(k.labels, n) for k, n in pairs]))
    pods.role.put(first, each([pods.roles.add(one.role) for one in kinds]))
    pods.queue.put(first, each([pods.queues.add(one.queue) for one in kinds]))
    pods.priority.put(first, each([one.priority for one in kinds]))
    pods.rank.put(first, each([one.rank for one in kinds]))
    pods.created.put(first, event.created)
    pods.started.put(first, event.started)


def _occupy(model: Model, event: PodsBound, crowd: _Crowd, first: int) -> None:
    model.pods.node.put(first, crowd.nodes[crowd.of])
    count = np.bincount(crowd.of, minlength=len(crowd.nodes))
    model.nodes.refs.add_at(crowd.nodes, count)
    for resource, amounts in crowd.demand.items():
        model.nodes.free[resource].add_at(crowd.nodes, -amounts)
    # A node's pods stand by priority, then by row: sorted so here, each node's are one stretch.
    priority = np.array([kind.priority for kind in event.kinds])[event.kind]
    order = np.lexsort((priority, crowd.of)).astype(_ROW)  # stable: rows ascend by themselves
    packed = (order + _ROW.type(first)).tobytes()
    begin = 0
    ends = (count.cumsum() * _ROW.itemsize).tolist()
    for node, end in zip(crowd.nodes.tolist(), ends, strict=True):
        _stand_on(model, node, packed[begin:end])
        begin = end


def _stand_on(model: Model, node: int, packed: bytes) -> None:
    """Add rows, by priority, to the pods of a node."""
    before = model.nodes.pods[node]
    if before:
        (last,), (first,) = _LAST.unpack(before[-_LAST.size :]), _LAST.unpack_from(packed)
        priority = model.pods.priority
        if (priority[last], last) > (priority[first], first):
            for row in np.frombuffer(packed, dtype=_ROW).tolist():
                model.insert(node, row)
            return
    model.nodes.pods[node] = before + packed
