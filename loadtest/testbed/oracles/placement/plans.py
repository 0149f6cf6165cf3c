"""Is a plan one that kube-scheduler would accept? Checked slowly, pod by pod, in Python.

Shares no code with the search: nodes and pods are turned into plain objects and each
member is tried as kube-scheduler's filters would try it. Members are bound in any order
that works: pass after pass over those not bound yet, until none is left or none fits.
(That finds an order whenever there is one: a member that fits now and is bound later could
only have got more room through a raised spread minimum or a new affinity partner.)

For tests, the demo's checker and debug mode.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from loadtest.testbed.oracles.placement.devices import device_refusal
from loadtest.testbed.oracles.placement.filters import Bench, Node, Pod
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import GangSpec, ranks
from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.tables.gangview import GangView
from muster.placement.decision import Plan


def verify(snapshot: Snapshot, plan: Plan) -> list[str]:
    """Return what is wrong with a plan, in sentences; an empty list for a valid one."""
    errors = list(_shape(snapshot, plan))
    if errors:
        return errors
    bench = Bench(snapshot)
    errors += _bind_all(bench, snapshot, plan)
    errors += _devices(bench, snapshot, plan)
    errors += _counts(snapshot, plan)
    errors += _levels(bench, snapshot, plan)
    errors += _spares(bench, snapshot, plan)
    return errors


def _shape(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    if plan.generation != snapshot.generation:
        yield f"plan is of generation {plan.generation}, snapshot of {snapshot.generation}"
    view = snapshot.gang(plan.gang)
    if view is None or view.spec is None:
        yield f"gang {plan.gang} is unknown"
        return
    everyone = [*plan.pods.tolist(), *plan.left_over.tolist()]
    if len(set(everyone)) < len(everyone):
        yield "a pod occurs twice"
    for row in everyone:
        number = int(snapshot.pods.gang[row])
        if number < 0 or snapshot.gang_at(number) != plan.gang:
            yield f"pod row {row} is no member of {plan.gang}"
    if not len(plan.pods) == len(plan.nodes) == len(plan.spares):
        yield "pods, nodes and spares differ in length"
    for row in plan.nodes.tolist():
        if not 0 <= row < snapshot.nodes.count or not snapshot.nodes.alive[row]:
            yield f"node row {row} is no living node"


def _bind_all(bench: Bench, snapshot: Snapshot, plan: Plan) -> list[str]:
    """Bind members until all are bound or a whole pass binds none; return why those left fail."""
    left = [
        (bench.pod(row), bench.nodes[node])
        for row, node in zip(plan.pods.tolist(), plan.nodes.tolist(), strict=True)
    ]
    while left:
        refused: list[tuple[Pod, Node]] = []
        for pod, node in left:
            if bench.refusal(pod, node) is None:
                bench.bind(pod, node)
            else:
                refused.append((pod, node))
        if len(refused) == len(left):
            return [f"{_name(snapshot, p)} on {n.name}: {bench.refusal(p, n)}" for p, n in left]
        left = refused
    return []


def _devices(bench: Bench, snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    on: dict[int, list[PodClass]] = {}
    for row, node in zip(plan.pods.tolist(), plan.nodes.tolist(), strict=True):
        on.setdefault(node, []).append(bench.pod(row).pod_class)
    for node, classes in on.items():
        refusal = device_refusal(snapshot, node, classes)
        if refusal:
            yield f"devices of {bench.nodes[node].name}: {refusal}"


def _name(snapshot: Snapshot, pod: Pod) -> str:
    return f"pod {snapshot.pods.names[pod.row] or pod.row}"


def _counts(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """Together they are enough, by the gang's minimum and each role's."""
    view = snapshot.gang(plan.gang)
    if view is None or view.spec is None:
        return
    placed = _already_placed(snapshot, plan)
    missing = view.spec.min_count - len(placed) - view.succeeded
    if len(plan.pods) < min(missing, len(plan.pods) + len(plan.left_over)):
        yield f"{len(plan.pods)} members are placed, {missing} must be"
    have = Counter(_role(snapshot, row) for row in [*plan.pods.tolist(), *placed])
    waiting = Counter(_role(snapshot, row) for row in plan.left_over.tolist())
    for role in view.spec.roles:
        if have[role.name] < min(role.min_count, have[role.name] + waiting[role.name]):
            yield f"role {role.name} has {have[role.name]} of {role.min_count} members"


def _role(snapshot: Snapshot, row: int) -> str:
    number = int(snapshot.pods.role[row])
    return snapshot.pods.roles[number] if number >= 0 else ""


def _already_placed(snapshot: Snapshot, plan: Plan) -> list[int]:
    view = snapshot.gang(plan.gang)
    if view is None:
        return []
    rows = [*view.assumed.tolist(), *view.released.tolist(), *view.bound.tolist()]
    mine = {*plan.pods.tolist(), *plan.left_over.tolist()}
    return [row for row in rows if row not in mine]


# --- levels -----------------------------------------------------------------------------


def _levels(bench: Bench, snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    view = snapshot.gang(plan.gang)
    if view is None or view.spec is None:
        return
    levels = snapshot.levels
    known = {key for key in levels for node in bench.nodes.values() if key in node.labels}
    used = [bench.nodes[row] for row in plan.nodes.tolist()]
    for key, count in plan.domains:
        found = len({_identity(node, levels, key, known) for node in used})
        if found != count:
            yield f"the plan says {count} domains of {key}, there are {found}"
    required = view.spec.required_level
    if required is not None:
        yield from _required(bench, snapshot, plan, required)
    if view.spec.slice_size and view.spec.slice_level:
        layers = (*view.spec.wider_slices, (view.spec.slice_level, view.spec.slice_size))
        beside = bool(_already_placed(snapshot, plan)) and _are_in_doubt(snapshot, view, view.spec)
        for level, size in layers:
            if beside:
                yield from _scattered(bench, snapshot, plan, view.spec, size, level)
            else:
                yield from _slices(bench, snapshot, plan, size, level, view.spec.slice_roles)


def _identity(
    node: Node, levels: Sequence[str], key: str, known: set[str]
) -> tuple[str | None, ...]:
    """Return what tells a node's domain from others: its path, or what is below without a label.

    ``known``: levels that some node has a label of; the others make no difference.
    """
    path = _path(node, levels, key)
    if path[-1] is not None or key not in known:
        return path
    below = levels[levels.index(key) + 1]
    return ("below", *_identity(node, levels, below, known))


def _path(node: Node, levels: Sequence[str], key: str) -> tuple[str | None, ...]:
    """Return the label values from the widest level down to ``key``; a host is its own."""
    if key == levels[-1]:
        return (node.name,)
    return tuple(node.labels.get(level) for level in levels[: levels.index(key) + 1])


def _required(bench: Bench, snapshot: Snapshot, plan: Plan, key: str) -> Iterator[str]:
    levels = snapshot.levels
    rows = [*plan.nodes.tolist(), *plan.spares[plan.spares >= 0].tolist()]
    paths = {_path(bench.nodes[row], levels, key) for row in rows}
    if len(paths) > 1:
        yield f"members or spares are in {len(paths)} domains of {key}, one is required"
    if any(path[-1] is None for path in paths):
        yield f"a member is on a node without the label {key}"
    before = Counter(
        _path(bench.nodes[node], levels, key)
        for node in (int(snapshot.pods.node[row]) for row in _already_placed(snapshot, plan))
        if node >= 0 and snapshot.nodes.alive[node]
    )
    if before and paths and max(before.values()) > max(before[path] for path in paths):
        yield f"the members already placed are in another domain of {key}"


def _slices(
    bench: Bench, snapshot: Snapshot, plan: Plan, size: int, key: str, roles: Sequence[str]
) -> Iterator[str]:
    """Yield the slices that are not whole with what stands already, where that is whole."""
    levels = snapshot.levels
    nodes = dict(zip(plan.pods.tolist(), plan.nodes.tolist(), strict=True))
    new: dict[int, set[tuple[str | None, ...]]] = {}
    old: dict[int, set[tuple[str | None, ...]]] = {}
    for row, number in _numbered(snapshot, plan, size, roles):
        node = nodes.get(row, int(snapshot.pods.node[row]))
        if node >= 0 and snapshot.nodes.alive[node]:
            paths = (new if row in nodes else old).setdefault(number, set())
            paths.add(_path(bench.nodes[node], levels, key))
    for number, paths in new.items():
        if len(paths) > 1:
            yield f"slice {number} of {size} is in {len(paths)} domains of {key}, not in one"
        if any(path[-1] is None for path in paths):
            yield f"slice {number} of {size} is on a node without the label {key}"
        if len(old.get(number, ())) == 1 and paths != old[number]:
            yield f"slice {number} of {size} is placed in another {key} than its members that stay"


def _are_in_doubt(snapshot: Snapshot, view: GangView, spec: GangSpec) -> bool:
    """Return whether a member has no number, or one that another one has, too."""
    rows = [
        row for state in (view.assumed, view.released, view.bound, view.waiting) for row in state
    ]
    numbers = ranks(spec, snapshot.pods.rank[np.array(rows, dtype=np.int64)]).tolist()
    return min(numbers) < 0 or len(set(numbers)) < len(numbers)


def _scattered(
    bench: Bench, snapshot: Snapshot, plan: Plan, spec: GangSpec, size: int, key: str
) -> Iterator[str]:
    """Yield whether more slices are begun than the gang has, if members may be in any slice."""
    nodes = dict(zip(plan.pods.tolist(), plan.nodes.tolist(), strict=True))
    rows = [*_already_placed(snapshot, plan), *nodes]
    before: Counter[tuple[str | None, ...]] = Counter()
    now: Counter[tuple[str | None, ...]] = Counter()
    sliced = [r for r in rows if not spec.slice_roles or _role(snapshot, r) in spec.slice_roles]
    for row in sliced:
        node = nodes.get(row, int(snapshot.pods.node[row]))
        if node >= 0 and snapshot.nodes.alive[node]:
            path = _path(bench.nodes[node], snapshot.levels, key)
            before[path] += row not in nodes
            now[path] += 1
            if row in nodes and path[-1] is None:
                yield f"a member in slices of {size} is on a node without the label {key}"
    begun, most = (sum(-(-count // size) for count in each.values()) for each in (now, before))
    others = [role for role in spec.roles if spec.slice_roles and role.name not in spec.slice_roles]
    outside = max(len(rows) - len(sliced), sum(role.min_count for role in others))
    in_all = max(spec.size or 0, spec.min_count) - outside
    if begun > max(most, -(-max(in_all, len(sliced)) // size)):
        yield f"{begun} slices of {size} are begun in domains of {key}"


def _numbered(
    snapshot: Snapshot, plan: Plan, size: int, roles: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Yield (pod row, slice): ranks, or places in the plan, counted among the sliced roles."""
    placed = _already_placed(snapshot, plan)
    rows = plan.pods.tolist() if not placed else [*placed, *plan.pods.tolist()]
    view = snapshot.gang(plan.gang)
    if view is None or view.spec is None:
        return
    numbers = ranks(view.spec, snapshot.pods.rank[np.array(rows, dtype=np.int64)])
    rank = dict(zip(rows, numbers.tolist(), strict=True))
    by_index = _are_in_doubt(snapshot, view, view.spec)
    if by_index:
        rank = {row: index for index, row in enumerate(rows)}
    outside = {rank[row] for row in rows if roles and _role(snapshot, row) not in roles}
    if not by_index:
        outside |= _outside(snapshot, view, view.spec, roles)
    for row in rows:
        if not roles or _role(snapshot, row) in roles:
            yield row, (rank[row] - sum(each < rank[row] for each in outside)) // size


def _outside(snapshot: Snapshot, view: GangView, spec: GangSpec, roles: Sequence[str]) -> set[int]:
    """Return the ranks in no slice of members that are not there: they ended, or are lost."""
    if not roles:
        return set()
    states = view.finished, view.leaving, view.blocked, view.waiting
    rows = [row for state in (*states, view.assumed, view.released, view.bound) for row in state]
    numbers = ranks(spec, snapshot.pods.rank[np.array(rows, dtype=np.int64)]).tolist()
    role = {n: _role(snapshot, int(row)) for n, row in zip(numbers, rows, strict=True) if n >= 0}
    in_turn = [each.name for each in spec.roles for _ in range(each.min_count)]
    if all(role.get(n, name) == name for n, name in enumerate(in_turn)):
        role = {**dict(enumerate(in_turn)), **role}
    return {n for n, name in role.items() if name not in roles}


# --- spares -----------------------------------------------------------------------------


def _spares(bench: Bench, snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """After the plan is bound, every spare still has room of its own, and no plan's nodes."""
    own = set(plan.nodes.tolist())
    asked: dict[int, Counter[str]] = {}
    for row, spares in zip(plan.pods.tolist(), plan.spares.tolist(), strict=True):
        pod = bench.pod(row)
        chosen = [spare for spare in spares if spare >= 0]
        if len(set(chosen)) < len(chosen):
            yield f"pod row {row} has one spare twice"
        for spare in chosen:
            if spare in own:
                yield f"spare {bench.nodes[spare].name} is a node of the plan itself"
            reason = bench.node_refusal(pod, bench.nodes[spare])
            if reason:
                yield f"spare {bench.nodes[spare].name}: {reason}"
            asked.setdefault(spare, Counter()).update(dict(pod.pod_class.requests))
    for spare, requests in asked.items():
        for resource, amount in requests.items():
            reserved = int(snapshot.nodes.spare_reserved(resource)[spare])
            if amount and amount > bench.nodes[spare].free(resource) - reserved:
                yield f"spare {bench.nodes[spare].name} has no room left for {resource}"
