"""Hot spares: room beside a gang for members it may lose, and who may have that room.

A gang that keeps spares is planned as if it were larger, by *candidates*: waiting pods like its
largest members that exist in an overlay only. What is planned for them is left out again::

    rack r1: room for 8   rack r2: room for 10      8 members, 2 spares, one rack required
             ▒▒▒▒▒▒▒▒              ████████··       ► r2, though r1 would be left fuller

Once the members have their place, places for the spares are chosen near them, as for successors,
so that a spare keeps every rule that a member keeps. With slices each slice has spares of its own:
a spare elsewhere could not replace a member of it. To that end the candidates are numbered into
the slices::

    ranks      0 1 2 3 | 4 5 6 7        slices of 4, 1 spare in each
    in overlay 0 1 2 3 (4) | 5 6 7 8 (9)

A gang may use the room of its own spares always, that of spares of lower priority where nothing
else is left, and no other spares' room.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from muster.cluster.devices.choice import class_weight
from muster.cluster.events import Assignment, PodUpserted, StandbyHeld
from muster.cluster.ids import NO_ROW, GangKey, PodUid
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.tables.gangview import GangView
from muster.placement import gang
from muster.placement.decision import Decision, Plan, Wait, WaitReason
from muster.placement.question import Question
from muster.placement.ranks.sliceplaces import slice_places
from muster.placement.ranks.unknownplaces import in_turn
from muster.placement.request import Rows
from muster.placement.tree import Ints, domains_used, tree_of

_UID_BYTES = 16
_FOR_ROOM = frozenset(WaitReason) - {
    WaitReason.MEMBERS_MISSING,
    WaitReason.NOT_ADMITTED,
    WaitReason.PLANNER_FAILED,
    WaitReason.UNSOUND_PLAN,
}


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """A snapshot with candidates in it."""

    snapshot: Snapshot
    #: int32[candidates], their pod rows.
    rows: Rows
    #: int64[candidates], the slice of each; 0 without slices.
    slices: Ints
    #: The pod row of the member that the candidates are like.
    like: int


# --- planning members -------------------------------------------------------------------


def plan_beside_spares(snapshot: Snapshot, view: GangView, question: Question) -> Steps[Decision]:
    """Plan the waiting members of a gang, with room for its spares and outside those of others.

    The plan lists the hot spares that it displaces.
    """
    own = view.standby
    room = snapshot.overlay(without_pods=own.tolist()) if len(own) else snapshot
    found = yield from _with_room(room, view, question)
    taken = own
    if isinstance(found, Wait) and found.reason in _FOR_ROOM:
        yielding = _yielding(snapshot, view)
        if len(yielding):
            taken = np.concatenate([own, yielding])
            again = snapshot.overlay(without_pods=taken.tolist())
            found = _better(found, (yield from _with_room(again, view, question)))
    if not isinstance(found, Plan) or not len(taken):
        return found
    in_the_way = np.isin(snapshot.pods.node[taken], found.nodes)
    return replace(found, displaced=taken[in_the_way].astype(np.int32))


def _better(wait: Decision, again: Decision) -> Decision:
    return again if isinstance(again, Plan) else wait


def _yielding(snapshot: Snapshot, view: GangView) -> Rows:
    """Return the hot spares of gangs of lower priority."""
    rows = snapshot.standby_rows()
    lower = snapshot.pods.priority[rows] < view.priority
    yielding: Rows = rows[lower]
    return yielding


def _with_room(room: Snapshot, view: GangView, question: Question) -> Steps[Decision]:
    """Plan a gang where its spares have room too, if it may choose that yet.

    Candidates come softly first, as members above the minimum do: they choose among places
    that are equally good. Firmly, as if the gang were that much larger, only where they
    could not come later: inside a required domain or a slice.
    """
    spec = view.spec
    anchored = len(view.assumed) + len(view.released) + len(view.bound)
    if spec is None or not spec.standby or anchored or not len(view.waiting):
        return (yield from gang.plan(room, question))
    bound_to = spec.slice_size or spec.required_level
    best: Plan | None = None
    for firm in (False, True) if not spec.slice_size else (True,):
        candidates = _candidates(room, view, firm=firm)
        if candidates is None:
            break
        found = yield from gang.plan(candidates.snapshot, question)
        if isinstance(found, Plan):
            best = _stripped(room, found)
            if len(found.pods) - len(best.pods) == len(candidates.rows) or not bound_to:
                break
    return best if best is not None and len(best.pods) else (yield from gang.plan(room, question))


def _stripped(room: Snapshot, plan: Plan) -> Plan:
    """Return the plan without the candidates."""
    real = plan.pods < room.pods.count
    topology = room.topology
    tree = tree_of(topology)
    positions = topology.domain(tree.host)[plan.nodes[real]]
    amounts = np.bincount(positions, minlength=tree.size)
    return replace(
        plan,
        pods=plan.pods[real],
        nodes=plan.nodes[real],
        spares=plan.spares[real],
        left_over=plan.left_over[plan.left_over < room.pods.count],
        domains=tuple(zip(topology.levels, domains_used(tree, amounts), strict=True)),
        proven=False,
    )


# --- choosing hot spares ----------------------------------------------------------------


def choose_hot_spares(
    snapshot: Snapshot, view: GangView, question: Question
) -> Steps[StandbyHeld | None]:
    """Return the hot spares that a placed gang lacks, as many as there is room for."""
    candidates = _candidates(snapshot, view, firm=False)
    if candidates is None or view.spec is None:
        return None
    without_spares = replace(question, spare_count=0)
    found = yield from gang.plan(candidates.snapshot, without_spares, candidates.rows)
    if not isinstance(found, Plan):
        return None
    uids = candidates.snapshot.pods.uids
    size = view.spec.slice_size
    slice_of = dict(zip(candidates.rows.tolist(), candidates.slices.tolist(), strict=True))
    near = _near_enough(snapshot, view, found.nodes)
    spares = tuple(
        Assignment(
            uid=uids[row],
            node=snapshot.nodes.name(node),
            rank=slice_of[row] * size if size else -1,
        )
        for row, node in zip(found.pods[near].tolist(), found.nodes[near].tolist(), strict=True)
    )
    return StandbyHeld(view.key, snapshot.pods.uid(candidates.like), spares) if spares else None


def _near_enough(snapshot: Snapshot, view: GangView, nodes: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which nodes share a domain of the spares' level with a member."""
    level = None if view.spec is None else view.spec.standby_level
    if level not in snapshot.levels:
        return np.ones(len(nodes), dtype=np.bool_)
    domain = snapshot.topology.domain(snapshot.levels.index(level))
    members = snapshot.pods.node[np.concatenate([view.assumed, view.released, view.bound])]
    return np.isin(domain[nodes], domain[members])


def _candidates(snapshot: Snapshot, view: GangView, *, firm: bool) -> _Candidates | None:
    """Return the cluster with the lacking hot spares as waiting pods; ``None``: none lacks."""
    spec = view.spec
    if spec is None or not spec.standby:
        return None
    members = np.concatenate([view.assumed, view.released, view.bound, view.waiting])
    numbers = _slice_numbers(snapshot, spec, members)
    inside = members[numbers >= 0]
    if not len(inside):
        return None
    lacking = list(_lacking(snapshot, spec, view, numbers))
    if not lacking:
        return None
    like = _largest(snapshot, inside)
    ranks = _ranks(snapshot, spec, members, numbers)
    step = (spec.slice_size or 0) + spec.standby
    first = max(int(ranks.max(initial=0)) + 1, 0)
    pods = [
        _pod(snapshot, view.key, like, number, rank if not spec.slice_size else each * step + last)
        for number, (each, last, rank) in enumerate(
            (each, last, first + n) for n, (each, last) in enumerate(lacking)
        )
    ]
    overlaid = snapshot.overlay(
        with_specs=(_larger(spec, len(pods), firm=firm),),
        with_pods=pods,
        with_ranks=dict(zip(members.tolist(), ranks.tolist(), strict=True))
        if spec.slice_size
        else None,
    )
    rows = np.arange(len(pods), dtype=np.int32) + np.int32(snapshot.pods.count)
    slices = np.array([each for each, _ in lacking], dtype=np.int64)
    return _Candidates(overlaid, rows, slices, like)


def _slice_numbers(snapshot: Snapshot, spec: GangSpec, members: Rows) -> Ints:
    """Return the slice of each member, -1 for one that is in none, 0 without slices."""
    if not spec.slice_size:
        return np.zeros(len(members), dtype=np.int64)
    order = in_turn(spec, snapshot.pods.rank[members])
    places, is_loose = slice_places(snapshot, spec, members[order])
    numbers = np.empty(len(members), dtype=np.int64)
    numbers[order] = np.where(is_loose, -1, places // spec.slice_size)
    return numbers


def _lacking(
    snapshot: Snapshot, spec: GangSpec, view: GangView, numbers: Ints
) -> Iterator[tuple[int, int]]:
    """Yield (slice, place in it) of each hot spare that is not held."""
    size = spec.slice_size
    held = snapshot.pods.rank[view.standby].astype(np.int64) // size if size else None
    for each in np.unique(numbers[numbers >= 0]).tolist():
        have = len(view.standby) if held is None else int(np.count_nonzero(held == each))
        for number in range(have, spec.standby):
            yield each, (size or 0) + number


def _ranks(snapshot: Snapshot, spec: GangSpec, members: Rows, numbers: Ints) -> Ints:
    """Return the members' ranks with places left free for candidates at the end of each slice."""
    ranks = snapshot.pods.rank[members].astype(np.int64)
    if not spec.slice_size:
        return ranks
    order = np.lexsort((ranks, numbers))
    result = np.empty(len(members), dtype=np.int64)
    step = spec.slice_size + spec.standby
    firsts = np.searchsorted(numbers[order], numbers[order], side="left")
    result[order] = numbers[order] * step + np.arange(len(members)) - firsts
    loose = numbers < 0
    beyond = (int(numbers.max()) + 1) * step
    result[loose] = beyond + np.arange(int(loose.sum()))
    return result


def _larger(spec: GangSpec, count: int, *, firm: bool) -> GangSpec:
    """Return what a gang asks for with ``count`` candidates among its members."""
    size, extra = spec.slice_size, spec.standby
    return replace(
        spec,
        size=None,
        max_count=None,
        min_count=spec.min_count + (count if firm else 0),
        slice_size=None if size is None else size + extra,
        wider_slices=tuple(
            (level, wide // (size or 1) * ((size or 1) + extra))
            for level, wide in spec.wider_slices
        ),
    )


def _largest(snapshot: Snapshot, rows: Rows) -> int:
    """Return the first of the members that ask for most: its room takes any of the others."""
    classes = snapshot.pods.pod_class[rows]

    def weight(number: int) -> tuple[object, ...]:
        pod_class = snapshot.classes[number]
        return class_weight(pod_class), pod_class.request("cpu"), pod_class.request("memory")

    heaviest = max(np.unique(classes).tolist(), key=weight)
    return int(rows[classes == heaviest][0])


def _pod(snapshot: Snapshot, key: GangKey, like: int, number: int, rank: int) -> PodUpserted:
    pods = snapshot.pods
    labels = snapshot.label_sets[int(pods.labels[like])]
    role = int(pods.role[like])
    return PodUpserted(
        uid=_uid(key, snapshot.generation, number),
        namespace=labels.namespace,
        name=f"standby-{number}",
        pod_class=snapshot.classes[int(pods.pod_class[like])],
        labels=labels,
        gang=key,
        role="" if role == NO_ROW else pods.roles[role],
        rank=rank,
        priority=int(pods.priority[like]),
        managed=True,
    )


def _uid(key: GangKey, generation: int, number: int) -> PodUid:
    text = f"standby {key} {generation} {number}"
    return PodUid(blake2b(text.encode(), digest_size=_UID_BYTES).digest())


def spare_nodes(snapshot: Snapshot, view: GangView) -> Sequence[str]:
    """Return the nodes of a gang's hot spares, by name."""
    return [snapshot.nodes.name(int(row)) for row in snapshot.pods.node[view.standby].tolist()]
