"""The invariants of the model, checked from the facts up.

Everything that the handlers update step by step is computed here once more in the simplest way,
and compared. Slow on purpose; for tests and for debugging.
"""

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from muster.cluster.devices.claims import SPARE, PackedClaim
from muster.cluster.devices.sharenames import share_by_name
from muster.cluster.errors import InvariantViolation
from muster.cluster.handlers import devicetroubles, quotaevents
from muster.cluster.ids import NO_ROW
from muster.cluster.model import Model
from muster.cluster.quota.audit import audit_charges
from muster.cluster.quota.charges import Bill
from muster.cluster.specs.gangspec import hot_spares_wanted
from muster.cluster.tables.holds import Hold, HoldState
from muster.cluster.tables.matchcounts import CountView, count_pods
from muster.cluster.tables.pods import HELD, OCCUPYING, PodFlag, PodState
from muster.cluster.tables.topologybuild import TopologyCell


def validate(model: Model) -> None:
    """Raise ``InvariantViolation`` for the first contradiction."""
    _check_rows(model)
    _check_states(model)
    _check_room(model)
    _check_node_lists(model)
    _check_spares(model)
    _check_names(model)
    _check_gangs(model)
    _check_shared_values(model)
    _check_counters(model)
    _check_devices(model)
    _check_deadlines(model)
    _check_standby(model)
    _check_charges(model)
    _check_topology(model)


def _require(holds: object, what: str) -> None:
    if not holds:
        raise InvariantViolation(what)


def _who(model: Model, row: int) -> str:
    return f"pod row {row} (uid {model.pods.uids[row].hex()})"


def _node(model: Model, node: int) -> str:
    return f"node {model.nodes.names[node]}"


def _check_rows(model: Model) -> None:
    used = set(model.pods.live())
    free = model.pods.free_rows()
    _require(len(set(free)) == len(free), "a pod row is free twice")
    _require(not used & set(free), "a pod row is used and free")
    _require(len(used) + len(free) == model.pods.count, "a pod row is neither used nor free")
    _require(len(model.directory) == len(used), "the directory does not list just the used rows")
    for row in used:
        found = model.directory.row(model.pods.uids[row])
        _require(found == row, f"{_who(model, row)} is found at row {found}")
    for table in (model.nodes.names, model.gangs.keys, model.nodes.taint_sets, model.classes):
        spent = table.free_ids()
        _require(len(set(spent)) == len(spent), "an id is free twice")
    for number, name in model.nodes.names.live():
        wanted = model.nodes.alive[number] or model.nodes.refs[number] > 0
        _require(wanted, f"node {name} is dead, unused, and it has a row")


def _check_states(model: Model) -> None:
    for row in model.pods.live():
        state, node, hold = model.pods.state[row], model.pods.node[row], model.holds[row]
        who = _who(model, row)
        _require((node != NO_ROW) == (state in OCCUPYING), f"{who}: state {state}, node row {node}")
        _require((hold is not None) == (state in HELD), f"{who}: state {state}, hold {hold}")
        if hold is not None:
            _check_hold(model, row, hold, who)
        managed = model.pods.has(row, PodFlag.MANAGED)
        ours = managed and model.pods.gang[row] != NO_ROW
        unmanaged = {PodState.PENDING, PodState.BOUND, PodState.FINISHED}
        _require(ours or PodState(state) in unmanaged, f"{who}: unmanaged and in state {state}")


def _check_hold(model: Model, row: int, hold: Hold, who: str) -> None:
    node = model.pods.node[row]
    assumed = model.pods.state[row] == PodState.ASSUMED
    _require(assumed == (hold.state is HoldState.ASSUMED), f"{who}: states of pod and hold differ")
    _require(model.nodes.names[node] == hold.node, f"{who}: counted on {node}, held on {hold.node}")
    _require({hold.node, *hold.spares} <= set(hold.pins), f"{who}: held beside its pins")
    gang = model.pods.gang[row]
    _require(gang != NO_ROW and model.gangs.keys[gang] == hold.gang, f"{who}: another gang's hold")
    reason = model.unfit(row, node) or devicetroubles.lost(model, row, node)
    needs = {resource for resource, _ in model.traits(model.pods.pod_class[row]).requests}
    room = not needs & _lacks(model, node)
    if assumed or hold.state is HoldState.STANDBY:
        _require(not hold.broken, f"{who}: assumed and broken")
        _require(not reason, f"{who}: assumed although {reason}")
        _require(room, f"{who}: assumed where there is no room")
    elif hold.broken:
        _require(reason or not room, f"{who}: broken ({hold.broken}) for no reason")
    else:
        unjudged = not model.nodes.alive[node] and node in model.unsettled
        _require(not reason or unjudged, f"{who}: whole although {reason}")


def _lacks(model: Model, node: int) -> set[int]:
    """Return the resources that a node lacks even without the pods that it cannot take.

    See ``muster.cluster.handlers.ledger.review``.
    """
    short = model.shortage(node)
    for row in model.held_on(node) if short else ():
        if model.unfit(row, node) or devicetroubles.lost(model, row, node):
            for resource, amount in model.traits(model.pods.pod_class[row]).requests:
                if resource in short:
                    short[resource] += amount
    return {resource for resource, free in short.items() if free < 0}


def _check_room(model: Model) -> None:
    used = [np.zeros(len(model.nodes.names), dtype=np.int64) for _ in model.nodes.free]
    for row in model.pods.live():
        node = model.pods.node[row]
        if node != NO_ROW:
            for resource, amount in model.traits(model.pods.pod_class[row]).requests:
                used[resource][node] += amount
    nodes = model.nodes.freeze()
    for number, name in enumerate(model.nodes.resources):
        free, allocatable = nodes.free_columns[number], nodes.allocatable_columns[number]
        wrong = np.flatnonzero(free != allocatable - used[number])
        _require(not len(wrong), f"{name}: free + used is not allocatable on node rows {wrong}")
        ghosts = np.flatnonzero(~nodes.alive & (allocatable != 0))
        _require(not len(ghosts), f"{name}: dead node rows {ghosts} have capacity")


def _check_node_lists(model: Model) -> None:
    listed: list[int] = []
    for node, _ in model.nodes.names.live():
        rows = model.pods_on(node)
        listed += rows
        keys = [(model.pods.priority[row], row) for row in rows]
        _require(keys == sorted(keys), f"{_node(model, node)}: its pods are out of order: {keys}")
        for row in rows:
            _require(model.pods.node[row] == node, f"{_who(model, row)} is listed on another node")
    standing = sorted(row for row in model.pods.live() if model.pods.node[row] != NO_ROW)
    _require(sorted(listed) == standing, "the node lists do not hold just the standing pods")


def _check_spares(model: Model) -> None:
    spare: Counter[tuple[int, int]] = Counter()
    refs: Counter[int] = Counter()
    for row in model.pods.live():
        refs[model.pods.node[row]] += 1
        refs[model.pods.nominated[row]] += 1
        hold = model.holds[row]
        for name in () if hold is None else hold.spares:
            node = model.nodes.names.find(name)
            _require(node is not None, f"{_who(model, row)}: spare {name} has no row")
            refs[node or 0] += 1
            for resource, amount in model.traits(model.pods.pod_class[row]).requests:
                spare[node or 0, resource] += amount
    for node, name in model.nodes.names.live():
        _require(model.nodes.refs[node] == refs[node], f"node {name}: users counted wrong")
        for number, column in enumerate(model.nodes.spare):
            _require(column[node] == spare[node, number], f"node {name}: spare room counted wrong")


def _check_names(model: Model) -> None:
    named = {row: name for name, rows in model.directory.names().items() for row in rows}
    for row in model.pods.live():
        name = model.pods.names[row]
        _require(named.pop(row, "") == name, f"{_who(model, row)}: found by another name")
        nameless = {PodState.BOUND, PodState.FINISHED, PodState.STANDBY}
        settled = model.pods.state[row] in nameless
        findable = model.pods.has(row, PodFlag.MANAGED) and not settled
        _require(bool(name) == findable, f"{_who(model, row)}: name {name!r}, findable {findable}")
    _require(not named, f"names of rows that are gone: {named}")


def _check_gangs(model: Model) -> None:
    members: list[int] = []
    for gang, key in model.gangs.live():
        rows = np.frombuffer(model.gangs.members[gang], dtype=np.int32).tolist()
        members += rows
        for row in rows:
            _require(model.pods.gang[row] == gang, f"gang {key}: {_who(model, row)} left it")
        spec = model.gangs.spec(gang)
        _require(rows or spec is not None, f"gang {key} is empty and no object describes it")
        _require(spec is None or spec.key == key, f"gang {key} has the spec of another")
    wanted = sorted(row for row in model.pods.live() if model.pods.gang[row] != NO_ROW)
    _require(sorted(members) == wanted, "gangs do not list just their members")


def _check_shared_values(model: Model) -> None:
    pods, gangs, devices = model.pods, model.gangs, model.devices
    rows = list(pods.live())
    _check_refs("pod class", model.classes.refs, (pods.pod_class[row] for row in rows))
    _check_refs("label set", model.label_sets.refs, (pods.labels[row] for row in rows))
    keys = [row for row, _ in gangs.live()]
    _check_refs("gang shape", gangs.shapes.refs, (gangs.shape[row] for row in keys))
    alive = [row for row, _ in model.nodes.names.live()]
    taints = (model.nodes.taint_set[row] for row in alive)
    _check_refs("taint set", model.nodes.taint_sets.refs, taints)
    layouts = (devices.layout[node] for node in alive)
    _check_refs("device layout", devices.layouts.refs, layouts)
    states = (devices.state[node] for node in alive)
    _check_refs("device state", devices.states.refs, states)


def _check_refs(what: str, refs: Callable[[int], int], users: Iterable[int]) -> None:
    for number, count in Counter(user for user in users if user != NO_ROW).items():
        _require(refs(number) == count, f"{what} {number}: users counted wrong")


def _check_counters(model: Model) -> None:
    pods, label_sets = model.pods.freeze(), model.label_sets.freeze()
    for query, view in model.matches.table.freeze().items():
        wanted = count_pods(query, pods, label_sets, model.namespaces)
        _require(_pairs(wanted.freeze()) == _pairs(view), f"counter of {query} is off")
    terms: dict[object, Counter[int]] = {}
    for row in model.pods.live():
        node = model.pods.node[row]
        if node == NO_ROW:
            continue
        traits = model.traits(model.pods.pod_class[row])
        for key in (*traits.anti_affinity, *traits.host_ports):
            terms.setdefault(key, Counter())[node] += 1
    found: dict[object, dict[int, int]] = {}
    found.update((key, _pairs(view)) for key, view in model.anti_affinity.freeze().items())
    found.update((key, _pairs(view)) for key, view in model.host_ports.freeze().items())
    found = {key: counts for key, counts in found.items() if counts}
    _require(found == terms, "anti-affinity terms or host ports are counted wrong")


def _pairs(view: CountView) -> dict[int, int]:
    rows, counts = view.pairs()
    return dict(zip(rows.tolist(), counts.tolist(), strict=True))


def _check_devices(model: Model) -> None:
    devices = model.devices
    for node, _ in model.nodes.names.live():
        claims = devices.claims_on(node)
        if devices.layout[node] == NO_ROW:
            _require(not claims, f"{_node(model, node)}: claims on devices it does not list")
            continue
        used = [(0, 0, 0, 0)] * len(devices.slots(node))
        for claim in claims:
            _check_claim(model, node, claim)
            milli, memory, units, mask = used[claim.device]
            what = f"device {devices.names[node][claim.device]} of {_node(model, node)}"
            _require(not mask & claim.mask, f"{what}: two MIG instances overlap")
            used[claim.device] = (
                milli + claim.milli,
                memory + claim.memory,
                units + claim.units,
                mask | claim.mask,
            )
        for slot, name, sums in zip(devices.slots(node), devices.names[node], used, strict=True):
            most = (1000, slot.shape.memory, slot.shape.units)
            over = any(sum_ > limit for sum_, limit in zip(sums, most, strict=False))
            _require(not over, f"device {name} of {_node(model, node)}: {sums} used of {most}")
        flat = [amount for sums in used for amount in sums]
        _require(devices.uses(node) == flat, f"{_node(model, node)}: device uses counted wrong")
        _check_given(model, node)
    for node, named in devices.open.items():
        for pod in named:
            _check_open(model, node, pod)


def _check_given(model: Model, node: int) -> None:
    """Check that each pod on a node has the devices it was given, or has an open claim."""
    devices = model.devices
    index = {name: number for number, name in enumerate(devices.names[node])}
    for pod in model.pods_on(node):
        given = devices.given.to(pod, node) or ()
        mine = {claim.device for claim in devices.claims_on(node) if claim.pod == pod}
        placed = (share_by_name(devices.slots(node), index, name) for name in given)
        known = {share.device for share in placed if share is not None}
        named = pod in devices.open.get(node, {})
        _require(named or known <= mine, f"{_who(model, pod)} was given {given}, but has {mine}")


def _check_claim(model: Model, node: int, claim: PackedClaim) -> None:
    who = f"{_who(model, claim.pod)} claims a device of {_node(model, node)}"
    if claim.flags & SPARE:
        hold = model.holds[claim.pod]
        there = hold is not None and model.nodes.names[node] in hold.spares
        _require(there, f"{who} as a spare, which it does not have")
    else:
        _require(model.pods.node[claim.pod] == node, f"{who} and is not there")


def _check_open(model: Model, node: int, pod: int) -> None:
    hold = model.holds[pod]
    spares = () if hold is None else hold.spares
    there = model.pods.node[pod] == node or model.nodes.names[node] in spares
    _require(there, f"{_who(model, pod)}: open claim where it is not")


def _check_deadlines(model: Model) -> None:
    waiting = set(model.deadlines)
    for row in model.pods.live():
        hold = model.holds[row]
        if hold is not None and hold.state is HoldState.ASSUMED:
            _require((hold.deadline, row) in waiting, f"{_who(model, row)} would never expire")


def _check_charges(model: Model) -> None:
    """Check that every pod on a node has its bill, and that the queues' sums are those of bills."""
    if not model.charges.is_used:
        return
    _require(not model.touched, f"rows {model.touched} are touched and not settled")
    bills: Counter[Bill] = Counter()
    for row in model.pods.live():
        wanted, number = quotaevents.bill(model, row), model.bills[row]
        found = None if number == NO_ROW else model.bill_kinds[number]
        _require(found == wanted, f"{_who(model, row)}: charged {found}, costs {wanted}")
        if wanted is not None:
            bills[wanted] += 1
    _check_refs("bill", model.bill_kinds.refs, (model.bills[row] for row in model.pods.live()))
    audit_charges(model.charges, bills)


def _check_standby(model: Model) -> None:
    listed = sorted(row for rows in model.standby.values() for row in rows)
    held = sorted(row for row in model.pods.live() if model.pods.state[row] == PodState.STANDBY)
    _require(listed == held, "the hot spares are not those that are listed")
    for gang, rows in model.standby.items():
        members = {model.pods.state[row] for row in model.gangs.rows(gang)} if rows else set()
        wanted = model.gangs.spec(gang) if rows else None
        enough = not rows or (wanted is not None and len(rows) <= hot_spares_wanted(wanted))
        _require(enough, f"gang row {gang} has {len(rows)} hot spares, more than it wants")
        alive = not rows or bool(members & (OCCUPYING - {PodState.STANDBY}))
        _require(alive, f"gang row {gang} has hot spares and no member that holds room")
        _require(all(model.pods.gang[row] == gang for row in rows), "a hot spare is another gang's")


def _check_topology(model: Model) -> None:
    nodes = model.nodes.freeze()
    known = model.topology_cell(nodes).get()
    fresh = TopologyCell(nodes, model.levels).get()
    _require(np.array_equal(known.order, fresh.order), "the topology's order is out of date")
    for level in range(len(model.levels)):
        same = np.array_equal(known.domain(level), fresh.domain(level))
        named = known.names(level) == fresh.names(level)
        _require(same and named, f"level {model.levels[level]} is out of date")
