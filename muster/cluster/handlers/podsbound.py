"""Many bound pods at once: the list of a cluster that runs.

One by one, a pod costs some tens of microseconds, and a million of them most of a minute. Here
a few hundred are entered together, with the same state as if each had come by itself::

    PodsBound ──► is every pod plain, new, and room for all? ──no──► podevents.upsert, each
                                   │ yes
                                   ▼
           columns in one stretch of rows; sums per node; each node's list of pods
                                   │
                                   ▼
           members of gangs join them; those that ask for devices claim them, one by one

A *plain* pod needs no decision: it is bound, without host ports or anti-affinity. What remains of
``podevents.upsert`` are sums, which do not depend on the order; nor do devices
(``muster.cluster.devices.settlement``). Nothing is written before all pods are known to be plain,
except rows of nodes and resources, which the other way would add as well.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.texts import ABSENT, are_empty
from muster.cluster.columns.uids import Uids
from muster.cluster.devices.needs import asks_of
from muster.cluster.effects import EventOutcome
from muster.cluster.events import PodsBound, PodUpserted
from muster.cluster.handlers import podevents
from muster.cluster.ids import NO_ROW
from muster.cluster.model import Model
from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.tables.pods import PodState

_INT32: Final = 1 << 31
_ROW: Final = np.dtype(np.int32)  # as ``Model`` packs the pods of a node
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Crowd:
    """The nodes of many pods, and what the pods take there."""

    #: Node rows, distinct and ascending.
    nodes: NDArray[np.intp]
    #: int[n]: each pod's place in ``nodes``.
    of: NDArray[np.intp]
    #: Resource id → int64[nodes], what the pods ask for together.
    demand: dict[int, NDArray[np.int64]]


def enter(model: Model, event: PodsBound, out: EventOutcome, *, gate: str, now: float) -> None:
    """Store the pods of a list. Raises ``ValueError`` for a kind that no pod can have."""
    _check(model, event)
    crowd = _crowd(model, event) if _are_plain(model, event) else None
    if crowd is None:
        for place in range(len(event.uids)):
            podevents.upsert(model, event.pod(place), out, gate=gate, now=now)
        return
    first = _new_rows(model, event.uids)
    _write(model, event, first)
    _occupy(model, crowd, first)
    out.gang(None)
    _join(model, event, first, out, now)
    _claim(model, event, crowd, first)
    if model.charges.is_used:
        model.touched.update(range(first, first + len(event.uids)))


def _check(model: Model, event: PodsBound) -> None:
    for kind in event.kinds:
        podevents.check(model, replace(kind, uid=event.uids[0], node=event.nodes[0]))
    wide = np.abs(event.ranks) >= _INT32
    if wide.any() or are_empty(event.nodes).any():
        for place in range(len(event.uids)):
            podevents.check(model, event.pod(place))


def _are_plain(model: Model, event: PodsBound) -> bool:
    if model.pods.has_free_rows or any(True for _ in model.matches.table.keys()):  # noqa: SIM118
        return False
    if any(plan.rank >= _INT32 for plan in event.plans.values()):
        return False
    return all(map(_is_plain, event.kinds)) and model.directory.are_new(event.uids)


def _is_plain(kind: PodUpserted) -> bool:
    asks = kind.pod_class
    return not (asks.host_ports or asks.pod_anti_affinity or kind.finished)


def _crowd(model: Model, event: PodsBound) -> _Crowd | None:
    """Return the nodes of the pods; ``None`` if one of them has no room for them."""
    rows = model.nodes.names.find_all(event.nodes)
    for place in np.flatnonzero(rows == ABSENT).tolist():
        rows[place] = model.node_row(event.nodes[place])
    nodes, of = np.unique(rows, return_inverse=True)
    demand: dict[int, NDArray[np.int64]] = {}
    classes, of_class = _classes(event)
    for number, pod_class in enumerate(classes):
        count = np.bincount(of[of_class == number], minlength=len(nodes))
        for resource, amount in model.requests_of(pod_class):
            before = demand.get(resource)
            more = count * np.int64(amount)
            demand[resource] = more if before is None else before + more
    alive = model.nodes.alive.at(nodes)
    for resource, amounts in demand.items():
        left = model.nodes.free[resource].at(nodes) - amounts
        if bool((alive & (left < 0) & (amounts > 0)).any()):
            return None
    return _Crowd(nodes, of, demand)


def _classes(event: PodsBound) -> tuple[list[PodClass], Rows]:
    """Return the distinct pod classes of the kinds, and for each pod the index of its class."""
    found: dict[int, int] = {}
    numbers = [found.setdefault(id(kind.pod_class), len(found)) for kind in event.kinds]
    classes = {number: kind.pod_class for number, kind in zip(numbers, event.kinds, strict=True)}
    return list(classes.values()), np.array(numbers, dtype=np.intp)[event.kind]


def _new_rows(model: Model, uids: Uids) -> int:
    """Add consecutive rows for the pods and return the first."""
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
    pods.rank.put(first, _ranks(event))
    pods.created.put(first, event.created)
    pods.started.put(first, event.started)
    pods.ends_by.put(first, np.array([one.ends_by for one in kinds])[kind])


def _ranks(event: PodsBound) -> NDArray[np.int64]:
    ranks = event.ranks.copy()
    for place, plan in event.plans.items():
        ranks[place] = podevents.rank_of(int(ranks[place]), plan)
    return ranks


def _join(model: Model, event: PodsBound, first: int, out: EventOutcome, now: float) -> None:
    """Add members to their gangs, in the order of the list."""
    keys = [kind.gang if kind.managed else None for kind in event.kinds]
    rows = [NO_ROW if key is None else model.gangs.row(key) for key in keys]
    gang = np.array(rows, dtype=np.intp)[event.kind]
    if not (gang != NO_ROW).any():
        return
    model.pods.gang.put(first, gang)
    order = np.argsort(gang, kind="stable")
    begins = np.flatnonzero(np.diff(gang[order], prepend=NO_ROW))
    for places in np.split(order, begins)[1:]:
        row, began = gang[places[0]], float(event.started[places[0]])
        model.gangs.join_all(int(row), (places + first).astype(_ROW), now)
        # A pod that was listed bound started in the past.
        model.gangs.first_bound(int(row), min(began or now, now))
    for key in keys:
        out.gang(key)


def _claim(model: Model, event: PodsBound, crowd: _Crowd, first: int) -> None:
    """Claim the devices that pods ask for, were given, or that their plans name."""
    devices, nodes = model.devices, crowd.nodes[crowd.of]
    asks = np.array([bool(asks_of(kind.pod_class)) for kind in event.kinds])[event.kind]
    published = devices.layout.at(crowd.nodes)[crowd.of] != NO_ROW
    places = set(np.flatnonzero(asks & published).tolist())
    places.update(place for place, plan in event.plans.items() if plan.devices)
    places.update(devices.given.those(event.uids, nodes))
    for place in sorted(places):
        named = podevents.planned_devices(event.plans.get(place), event.nodes[place])
        devices.claim(first + place, int(nodes[place]), named, spare=False)
        podevents.take_devices(model, first + place, named)


def _occupy(model: Model, crowd: _Crowd, first: int) -> None:
    model.pods.node.put(first, crowd.nodes[crowd.of])
    count = np.bincount(crowd.of, minlength=len(crowd.nodes))
    model.nodes.refs.add_at(crowd.nodes, count)
    for resource, amounts in crowd.demand.items():
        model.nodes.free[resource].add_at(crowd.nodes, -amounts)
    rows = np.arange(first, first + len(crowd.of), dtype=_ROW)
    model.nodes.pods.insert_all(crowd.nodes[crowd.of], rows)
