"""What exactly is asked for: members sorted into groups, wishes into level numbers.

A *group* is a set of members that no rule can tell apart: equal pod class, and labels
that every selector in play treats alike. Members of a group are interchangeable.

``mandatory`` members must be placed together, or nothing is: the minima of the roles
first, then by rank until ``min_count`` is reached. Members that already hold a place or
have succeeded count towards it.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.paged import distinct
from muster.cluster.ids import GangKey
from muster.cluster.resumable import FEW, Steps, run
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.contradictions import ContradictionKind, contradictions
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.specs.podconstraints import PodAffinityTerm, PodClass
from muster.cluster.tables.gangview import GangView
from muster.placement.decision import Reject, RejectReason, Wait, WaitExplanation, WaitReason
from muster.placement.question import Question
from muster.placement.ranks.unknownplaces import in_turn
from muster.placement.rules.topologyspread import spread_term
from muster.placement.tree import ROOT

Rows = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class MemberGroup:
    """Interchangeable members."""

    pod_class: PodClass
    labels_id: int
    #: int32[members], pod rows, the mandatory ones first.
    rows: Rows
    #: How many of them must be placed together.
    mandatory: int

    def request(self, resource: str) -> int:
        """Return what one member asks of a resource."""
        return self.pod_class.request(resource)


@dataclass(frozen=True, slots=True)
class TopologyWish:
    """The levels that a gang asks for, by number; ``ROOT`` for none."""

    required: int = ROOT
    preferred: int = ROOT
    #: Members of a slice, 0: no slices.
    slice_size: int = 0
    slice_level: int = ROOT
    #: Slices of slices, (level, size in members), widest first.
    wider: tuple[tuple[int, int], ...] = ()

    @property
    def slices(self) -> tuple[tuple[int, int], ...]:
        """Return (level, size) of every layer of slices, widest first."""
        return (*self.wider, (self.slice_level, self.slice_size)) if self.slice_size else ()

    @property
    def slice_levels(self) -> set[int]:
        """Return the levels of all layers of slices."""
        return {level for level, _ in self.slices}

    @property
    def unsliced(self) -> "TopologyWish":
        """Return the same wish without slices."""
        return replace(self, slice_size=0, slice_level=ROOT, wider=())

    def order(self, host: int) -> tuple[int, ...]:
        """Return all levels in the order in which their domains count."""
        first = (level for level in (self.required, self.preferred) if level != ROOT)
        return tuple(dict.fromkeys((*first, *range(host + 1))))


@dataclass(frozen=True, slots=True, eq=False)
class GangRequest:
    """A gang ready to be placed."""

    key: GangKey
    generation: int
    spec: GangSpec
    wish: TopologyWish
    groups: tuple[MemberGroup, ...]
    #: int32, pod rows to place, by rank and name.
    members: Rows
    #: int32, node rows of members already placed.
    anchors: Rows
    #: int32, pod rows of these members.
    placed: Rows
    spare_count: int
    #: How many of the members must be placed together.
    need: int = 0
    #: (role number, members of it that must be among those) of the roles with minima of their own.
    lacks: tuple[tuple[int, int], ...] = ()
    #: Until when its preferred level is required, seconds since the epoch; ``None``: it is not, or
    #: not any more.
    relaxes_at: float | None = None

    @property
    def mandatory(self) -> int:
        """Members that must be placed together."""
        return sum(group.mandatory for group in self.groups)


def read(snapshot: Snapshot, question: Question) -> GangRequest | Wait | Reject:
    """Return what a gang asks for, or why it cannot be planned at all."""
    return run(reading(snapshot, question))


def reading(
    snapshot: Snapshot, question: Question, members: Rows | None = None
) -> Steps[GangRequest | Wait | Reject]:
    """As ``read``, in slices.

    ``members``: int32 pod rows to place; ``None``: all that are waiting. Raises ``KeyError``
    when the snapshot has no such gang.
    """
    view = snapshot.gang(question.gang)
    if view is None:
        raise KeyError(
            f"gang {question.gang!r} is not in snapshot generation {snapshot.generation}"
        )
    if view.spec is None:
        return _missing(snapshot, view, "the object that describes the gang has not been seen yet")
    has_pauses = len(view.waiting) > FEW
    if has_pauses:
        yield
    contradictory = _contradictory(snapshot, view, view.spec)
    if contradictory is not None:
        return contradictory
    if has_pauses:
        yield
    request = yield from _members(
        snapshot, view, view.spec, question.spare_count, members, question.most
    )
    return _strict(request, view, question.now) if isinstance(request, GangRequest) else request


def _strict(request: GangRequest, view: GangView, now: float) -> GangRequest:
    """Return the request with its preferred level required while it is not to be relaxed yet."""
    wish, after = request.wish, request.spec.relax_after
    if after is None or now >= view.submitted_at + after:
        return request
    required = max(wish.required, wish.preferred)
    wish = replace(wish, required=required)
    return replace(request, wish=wish, relaxes_at=view.submitted_at + after)


def _contradictory(snapshot: Snapshot, view: GangView, spec: GangSpec) -> Reject | None:
    """Reject a gang that can be placed on no nodes whatever, with all that is wrong with it."""
    found = contradictions(spec, snapshot.levels)
    problems = [*spec.problems, *map(str, found), *_device_problems(snapshot, view)]
    if not problems:
        return None
    levels_only = all(one.kind is ContradictionKind.UNKNOWN_LEVEL for one in found) and len(
        problems
    ) == len(found)
    reason = RejectReason.UNKNOWN_LEVEL if levels_only else RejectReason.CONTRADICTORY_SPEC
    return Reject(view.key, snapshot.generation, reason, f"gang {view.key}: {'; '.join(problems)}")


def _device_problems(snapshot: Snapshot, view: GangView) -> Iterable[str]:
    """Return what in the waiting members' device asks contradicts itself."""
    classes = distinct(snapshot.pods.pod_class[view.waiting]).tolist()
    return dict.fromkeys(p for number in classes for p in snapshot.classes[number].devices.problems)


def _missing(snapshot: Snapshot, view: GangView, remedy: str) -> Wait:
    count = int(np.count_nonzero(snapshot.nodes.alive))
    explanation = WaitExplanation(count, count, (), remedy=remedy)
    return Wait(view.key, snapshot.generation, WaitReason.MEMBERS_MISSING, explanation)


def _members(
    snapshot: Snapshot,
    view: GangView,
    spec: GangSpec,
    spare_count: int,
    chosen: Rows | None,
    most: int | None,
) -> Steps[GangRequest | Wait]:
    members = _in_turn(snapshot, spec, view.waiting if chosen is None else chosen)
    if chosen is None and most is not None:
        members = _fewer(snapshot, view, spec, members, most)
    has_pauses = len(view.waiting) > FEW
    placed = np.concatenate([view.assumed, view.released, view.bound])
    if chosen is not None:
        placed = placed[~np.isin(placed, members)]
    need = max(spec.min_count - len(placed) - view.succeeded, 0)
    if not len(members) or (need > len(members) and not len(placed)):
        return _missing(snapshot, view, _missing_text(spec, view, len(members)))
    counted = np.concatenate([placed, view.counted])
    if has_pauses:
        yield
    need = min(need, len(members))
    lacks, short = _lacks(snapshot, spec, members, counted)
    if short and not len(placed):
        return _missing(snapshot, view, short)
    nodes = snapshot.pods.node[placed]
    must = _mandatory(snapshot, members, lacks, need)
    if has_pauses:
        yield
    groups = tuple(_groups(snapshot, members, must))
    if has_pauses:
        yield
    return GangRequest(
        key=view.key,
        generation=snapshot.generation,
        spec=spec,
        wish=_wish(snapshot, spec),
        groups=groups,
        members=members,
        anchors=nodes[nodes >= 0].astype(np.int32),
        placed=placed,
        spare_count=spare_count,
        need=need,
        lacks=lacks,
    )


def _fewer(snapshot: Snapshot, view: GangView, spec: GangSpec, members: Rows, most: int) -> Rows:
    """Return at most so many members, the mandatory ones first, in their order."""
    has = np.concatenate([view.assumed, view.released, view.bound, view.counted])
    need = min(max(spec.min_count - len(has), 0), len(members))
    lacks, _ = _lacks(snapshot, spec, members, has)
    must = _mandatory(snapshot, members, lacks, need)
    others = np.flatnonzero(~must)
    must[others[: max(most - int(must.sum()), 0)]] = True
    return members[must]


def _missing_text(spec: GangSpec, view: GangView, waiting: int) -> str:
    text = f"{waiting} of {spec.min_count} members can be planned"
    if len(view.blocked):
        text += f"; {len(view.blocked)} are held back by other gates or are being deleted"
    return text + "; the others must be created first"


def _in_turn(snapshot: Snapshot, spec: GangSpec, rows: Rows) -> Rows:
    """Return members by rank; in slices, those whose numbers come twice Job by Job."""
    numbers = snapshot.pods.rank[rows]
    order = in_turn(spec, numbers) if spec.slice_size else np.argsort(numbers, kind="stable")
    return rows[order].astype(np.int32)


def _lacks(
    snapshot: Snapshot, spec: GangSpec, members: Rows, counted: Rows
) -> tuple[tuple[tuple[int, int], ...], str]:
    """Return (role number, members it lacks) per role and, when too few wait, a sentence.

    ``counted``: members that have a place or have succeeded, which count for their roles.
    """
    lacks, short = [], ""
    for role in spec.roles:
        number = snapshot.pods.roles.find(role.name)
        have = int(np.count_nonzero(snapshot.pods.role[counted] == number))
        here = int(np.count_nonzero(snapshot.pods.role[members] == number))
        lack = max(role.min_count - have, 0)
        if here < lack:
            short = f"role {role.name} has {here + have} of {role.min_count} members"
        if number is not None and min(lack, here):
            lacks.append((number, min(lack, here)))
    return tuple(lacks), short


def _mandatory(
    snapshot: Snapshot, members: Rows, lacks: Sequence[tuple[int, int]], need: int
) -> NDArray[np.bool_]:
    """Return bool[members]: what the roles lack, then the first ones until it is enough."""
    must = np.zeros(len(members), dtype=np.bool_)
    for number, lack in lacks:
        must[np.flatnonzero(snapshot.pods.role[members] == number)[:lack]] = True
    others = np.flatnonzero(~must)
    must[others[: max(need - int(must.sum()), 0)]] = True
    return must


def with_minimum(request: GangRequest, rows: Rows) -> GangRequest:
    """Return the request with just these members as the mandatory ones."""
    groups = []
    for group in request.groups:
        must = np.isin(group.rows, rows)
        ordered = np.concatenate([group.rows[must], group.rows[~must]])
        groups.append(replace(group, rows=ordered, mandatory=int(must.sum())))
    return replace(request, groups=tuple(groups))


def without_groups(
    snapshot: Snapshot, request: GangRequest, out: Container[int]
) -> GangRequest | None:
    """Return the request without some of its groups, by number; ``None``: it needs them.

    Their members stay members: they are left over.
    """
    kept = [group for number, group in enumerate(request.groups) if number not in out]
    rows = request.members[np.isin(request.members, [r for g in kept for r in g.rows.tolist()])]
    roles = snapshot.pods.role[rows]
    enough = all(np.count_nonzero(roles == number) >= lack for number, lack in request.lacks)
    if not len(rows) or len(rows) < request.need or not enough:
        return None
    must = _mandatory(snapshot, rows, request.lacks, request.need)
    return with_minimum(replace(request, groups=tuple(kept)), rows[must])


def _wish(snapshot: Snapshot, spec: GangSpec) -> TopologyWish:
    def number(level: str | None) -> int:
        return ROOT if level not in snapshot.levels else snapshot.levels.index(level)

    return TopologyWish(
        required=number(spec.required_level),
        preferred=number(spec.preferred_level),
        slice_size=spec.slice_size or 0,
        slice_level=number(spec.slice_level),
        wider=tuple((number(level), size) for level, size in spec.wider_slices),
    )


def _groups(snapshot: Snapshot, members: Rows, must: NDArray[np.bool_]) -> Iterator[MemberGroup]:
    """Yield the groups in the order of their first member."""
    classes = snapshot.pods.pod_class[members].astype(np.int64)
    labels = snapshot.pods.labels[members].astype(np.int64)
    kinds, sets = distinct(classes), distinct(labels)
    if len(kinds) == len(sets) == 1:  # nearly every gang, and the largest
        mine = np.concatenate([np.flatnonzero(must), np.flatnonzero(~must)])
        kind = snapshot.classes[int(kinds[0])]
        yield MemberGroup(kind, int(sets[0]), members[mine], int(must.sum()))
        return
    alike = _alike(snapshot, kinds, sets)
    keys = classes * len(snapshot.label_sets) + alike[labels]
    _, firsts, inverse = np.unique(keys, return_index=True, return_inverse=True)
    for group in np.argsort(firsts).tolist():
        mine = np.flatnonzero(inverse == group)
        mine = np.concatenate([mine[must[mine]], mine[~must[mine]]])
        yield MemberGroup(
            pod_class=snapshot.classes[int(classes[mine[0]])],
            labels_id=int(labels[mine[0]]),
            rows=members[mine],
            mandatory=int(must[mine].sum()),
        )


def _alike(
    snapshot: Snapshot, classes: NDArray[np.int64], labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Map label set ids to the first id that every selector in play treats alike."""
    table = np.arange(len(snapshot.label_sets))
    if len(labels) == 1:
        return table
    terms = list(dict.fromkeys(t for c in classes.tolist() for t in _terms(snapshot.classes[c])))
    first: dict[tuple[object, ...], int] = {}
    for number in labels.tolist():
        repelled = frozenset(term for term, _ in snapshot.anti_affinity_against(number))
        signature = (repelled, *(snapshot.matches(term, number) for term in terms))
        table[number] = first.setdefault(signature, number)
    return table


def _terms(pod_class: PodClass) -> Iterator[PodAffinityTerm]:
    yield from pod_class.pod_affinity
    yield from pod_class.pod_anti_affinity
    yield from map(spread_term, pod_class.spread)
