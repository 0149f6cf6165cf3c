"""Everything a snapshot says, by value: equal fingerprints, equal snapshots.

Rows are left out on purpose where ``by_name`` is asked for: two clusters that saw the same
objects in another order agree by name and not by row.
"""

from collections.abc import Hashable

from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView, Rows
from muster.cluster.tables.pods import COLUMNS, PodState


def exact(snapshot: Snapshot) -> Hashable:
    """Return all columns of a snapshot, copied, and its generation."""
    return snapshot.generation, content(snapshot)


def content(snapshot: Snapshot) -> Hashable:
    """Return all columns of a snapshot, copied: what may have come in more steps or fewer."""
    nodes, pods = snapshot.nodes, snapshot.pods
    keys = sorted(nodes.label_view.codes)
    labels = tuple((key, nodes.label_view.codes[key].tobytes()) for key in keys)
    return (
        tuple(nodes.names),
        nodes.resources,
        tuple(column.tobytes() for column in nodes.allocatable_columns),
        tuple(column.tobytes() for column in nodes.free_columns),
        tuple(column.tobytes() for column in nodes.spare_columns),
        nodes.alive.tobytes(),
        nodes.ready.tobytes(),
        nodes.unschedulable.tobytes(),
        nodes.taint_set.tobytes(),
        tuple(nodes.taint_sets),
        labels,
        tuple(nodes.pods_on(row).tobytes() for row in range(nodes.count)),
        tuple(getattr(pods, name).array().tobytes() for name in COLUMNS),
        tuple(pods.uids),
        tuple(pods.names),
        tuple(pods.queues),
        tuple(snapshot.classes),
        tuple(snapshot.label_sets),
        tuple(repr(snapshot.hold(row)) for row in range(pods.count)),
        tuple(_gang(snapshot, key) for key in snapshot.gangs()),
        tuple((term, counts.tobytes()) for term, counts in snapshot.anti_affinity_terms()),
        tuple(snapshot.devices.claims),
        tuple(repr(given) for given in snapshot.devices.given),
        tuple(tuple(snapshot.devices.uses(row)) for row in range(nodes.count)),
        tuple(snapshot.devices.names),
        snapshot.topology.order.tobytes(),
        tuple(tuple(snapshot.topology.names(i)) for i in range(len(snapshot.levels))),
    )


def by_name(snapshot: Snapshot) -> Hashable:
    """Return what a snapshot says of nodes and pods by their names."""
    nodes, pods = snapshot.nodes, snapshot.pods
    living = [row for row in range(nodes.count) if nodes.alive[row]]
    resources = sorted(nodes.resources)
    amounts = {
        nodes.name(row): tuple(
            (int(nodes.allocatable(r)[row]), int(nodes.free(r)[row]), int(nodes.used(r)[row]))
            for r in resources
        )
        for row in living
    }
    spare = {
        nodes.name(row): tuple(int(nodes.spare_reserved(r)[row]) for r in resources)
        for row in living
    }
    where = {
        pods.uid(row): (pods.state[row], nodes.name(pods.node[row]) if pods.node[row] >= 0 else "")
        for row in range(pods.count)
        if pods.state[row] != PodState.FREE
    }
    terms = {
        (term, nodes.name(row)): int(counts[row])
        for term, counts in snapshot.anti_affinity_terms()
        for row in counts.nonzero()[0].tolist()
    }
    topology = snapshot.topology
    paths = frozenset(
        topology.path(len(snapshot.levels) - 1, int(topology.domain(len(snapshot.levels) - 1)[row]))
        for row in living
    )
    free_devices = {
        (nodes.name(row), resource): tuple(snapshot.devices.free_devices(row, resource))
        for row in living
        for resource in resources
    }
    return (
        frozenset(amounts.items()),
        frozenset(spare.items()),
        frozenset(where.items()),
        frozenset(terms.items()),
        frozenset(free_devices.items()),
        paths,
        frozenset(_gang_by_uid(snapshot, key) for key in snapshot.gangs()),
    )


def _members(view: GangView) -> tuple[Rows, ...]:
    held = (view.assumed, view.released, view.bound, view.leaving)
    return (view.waiting, view.blocked, *held, view.finished)


def _gang(snapshot: Snapshot, key: str) -> Hashable:
    view = snapshot.gang(key)  # type: ignore[arg-type]  # a GangKey
    assert view is not None
    rows = _members(view)
    times = (view.submitted_at, view.first_bound_at, view.last_member_at)
    counts = (view.attempts, view.skips, view.last_reason, view.priority, view.succeeded)
    return (key, view.spec, view.phase, *(r.tobytes() for r in rows), times, counts)


def _gang_by_uid(snapshot: Snapshot, key: str) -> Hashable:
    view = snapshot.gang(key)  # type: ignore[arg-type]  # a GangKey
    assert view is not None
    rows = _members(view)
    return (
        key,
        view.spec,
        view.phase,
        tuple(tuple(map(snapshot.pods.uid, r.tolist())) for r in rows),
    )
