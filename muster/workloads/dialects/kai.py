"""KAI Scheduler's PodGroups (scheduling.run.ai/v2alpha2).

Pods name their PodGroup in the annotation ``pod-group-name`` and their sub-group in the
label ``kai.scheduler/subgroup-name`` (pkg/common/constants/constants.go). KAI's podgrouper
makes PodGroups for pods of its own scheduler name; pods that Muster has taken over are
grouped by their owners' dialects instead, and only PodGroups made by hand remain.

**Sub-groups** are a tree; the leaves hold pods and are roles here. ``minSubGroup`` (so many
of the children will do) cannot be said: all of them are demanded, which never places less
than was asked for. A level that a sub-group's members must share, while others may be elsewhere,
is slices of its leaves (``muster.workloads.keys.gangparts``), as many members as it needs; that of
a sub-group with all leaves is the gang's. Sub-groups of different levels are a problem, unless they
nest. Members beyond what a leaf needs share its slice.

**Status.** A group that waits has the scheduling condition that KAI's scheduler gives it, until
it is placed (pkg/scheduler/cache/status_updater).
"""

from dataclasses import replace
from typing import Final

import msgspec

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.kube import wire
from muster.workloads.dialect import Member, Watched, gang_key
from muster.workloads.dialects.podgroups import count_problem, group, said
from muster.workloads.groupconditions import Conditions, with_condition, without_condition
from muster.workloads.keys.foreignwishes import preemptibility
from muster.workloads.keys.gangparts import GangPart, as_slices
from muster.workloads.keys.labels import overlay, read
from muster.workloads.keys.levels import foreign
from muster.workloads.keys.operatorgroups import gang_of_controller, is_operators
from muster.workloads.keys.ranks import pod_rank
from muster.workloads.status import Fields, GangProgress, GroupStatus

POD_GROUP: Final = "pod-group-name"
SCHEDULER: Final = "kai-scheduler"
NODE_POOL: Final = "kai.scheduler/node-pool"  # label; pkg/common/constants/constants.go
UNSCHEDULABLE: Final = "UnschedulableOnNodePool"
CONDITIONS: Final = "schedulingConditions"
SUB_GROUP: Final = "kai.scheduler/subgroup-name"
_WRITTEN: Final = (
    ("required_level", "spec.topologyConstraint.requiredTopologyLevel"),
    ("preferred_level", "spec.topologyConstraint.preferredTopologyLevel"),
)


class TopologyConstraint(wire.Wire, frozen=True):
    """Levels are node label keys of KAI's Topology."""

    required_topology_level: str = ""
    preferred_topology_level: str = ""


class SubGroup(wire.Wire, frozen=True):
    """A part of a PodGroup; one that others name as their parent has no pods of its own."""

    name: str = ""
    min_member: int | None = None
    parent: str | None = None
    topology_constraint: TopologyConstraint | None = None

    @property
    def minimum(self) -> int:
        """Members that this part needs."""
        return 1 if self.min_member is None else self.min_member

    @property
    def required(self) -> str:
        """The level that its members must share, or ""."""
        found = self.topology_constraint
        return "" if found is None else found.required_topology_level


class PodGroupSpec(wire.Wire, frozen=True):
    """What Muster reads of a PodGroup's spec."""

    min_member: int | None = None
    queue: str = ""
    preemptibility: str = ""
    sub_groups: tuple[SubGroup, ...] = ()
    topology_constraint: TopologyConstraint = TopologyConstraint()


class PodGroupStatus(wire.Wire, frozen=True):
    """What Muster reads and writes of a PodGroup's status."""

    scheduling_conditions: Conditions = ()


class PodGroup(wire.Wire, frozen=True):
    """scheduling.run.ai/v2alpha2 PodGroup."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


def spec(found: PodGroup) -> GangSpec | None:
    """Return the gang of a PodGroup; None for one that was made of an object that says more."""
    meta, wanted = found.metadata, found.spec
    if is_operators(meta):
        return None
    leaves = _leaves(wanted.sub_groups)
    needed = sum(leaf.minimum for leaf in leaves)
    stated = needed if wanted.min_member is None else wanted.min_member
    minimum = max(stated, needed) or 1
    plain = group(Kai.name, meta, minimum, roles=_roles(leaves), queue=wanted.queue)
    levels = wanted.topology_constraint
    laid = replace(
        plain,
        preemptibility=preemptibility(wanted.preemptibility),
        required_level=_level(levels.required_topology_level),
        preferred_level=_level(levels.preferred_topology_level),
        problems=plain.problems + count_problem(stated or 1, "spec.minMember"),
        written=(*plain.written, *_WRITTEN),
    )
    return overlay(_with_parts(laid, wanted.sub_groups), read(meta.labels, meta.annotations))


def _leaves(parts: tuple[SubGroup, ...]) -> list[SubGroup]:
    parents = {part.parent for part in parts}
    return [part for part in parts if part.name not in parents]


def _roles(leaves: list[SubGroup]) -> tuple[RoleSpec, ...]:
    return tuple(RoleSpec(leaf.name, leaf.minimum) for leaf in leaves if leaf.minimum > 0)


def _level(written: str) -> str | None:
    return foreign(written) if written else None


def _with_parts(laid: GangSpec, parts: tuple[SubGroup, ...]) -> GangSpec:
    """Return the gang with the required levels of its sub-groups, as far as they can be said."""
    bound = [part for part in parts if part.required]
    if not bound:
        return laid
    everyone = frozenset(leaf.name for leaf in _leaves(parts))
    field = f"spec.subGroups[{bound[-1].name}].topologyConstraint.requiredTopologyLevel"
    if len(bound) == 1 and _under(bound[0], parts) >= everyone and laid.required_level is None:
        level = _level(bound[0].required)
        return replace(
            laid, required_level=level, written=(("required_level", field), *laid.written)
        )
    sizes = {leaf.name: max(leaf.minimum, 0) for leaf in _leaves(parts)}
    apart = [
        GangPart(
            part.name, inside, sum(sizes[name] for name in inside), _level(part.required) or ""
        )
        for part in bound
        if (inside := _under(part, parts))
    ]
    sliced = as_slices(laid, apart, everyone)
    if sliced is None:
        names = ", ".join(part.name for part in bound)
        problem = (
            f"spec.subGroups: {names}: parts with a required level have the same level, or nest: "
            "give them one level, or minima that are multiples of each other"
        )
        return replace(laid, problems=(*laid.problems, problem))
    those = frozenset[str]().union(*(part.roles for part in apart))
    alone = {name for part in apart if len(part.roles) == 1 for name in part.roles}
    in_turn = _in_turn(parts, those)
    width = sliced.slice_size or 0
    return replace(
        sliced,
        slice_roles=tuple(sorted(those)),
        rank_runs=tuple((1, width if name in alone else sizes[name]) for name in in_turn),
        numbered_roles=tuple((name, sizes[name] if name in alone else 0) for name in in_turn),
        written=(("slice_level", field), ("slice_size", "spec.subGroups"), *laid.written),
    )


def _under(part: SubGroup, parts: tuple[SubGroup, ...]) -> frozenset[str]:
    """Return the names of the leaves that a part has, or is."""
    return frozenset(leaf.name for leaf in _leaves(parts) if part.name in _lineage(leaf, parts))


def _lineage(leaf: SubGroup, parts: tuple[SubGroup, ...]) -> list[str]:
    """Return the names of a leaf and of the parts around it, the widest last."""
    parents = {part.name: part.parent for part in parts}
    found, name = list[str](), leaf.name if leaf.name in parents else None
    while name is not None and name not in found:
        found.append(name)
        name = parents.get(name)
    return found


def _in_turn(parts: tuple[SubGroup, ...], sliced: frozenset[str]) -> tuple[str, ...]:
    """Return the names of the leaves in their order, those of one parent beside each other.

    Those in no slice come last, so that slices are counted from 0.
    """
    first: dict[str, int] = {}
    for number, leaf in enumerate(_leaves(parts)):
        for name in _lineage(leaf, parts):
            first.setdefault(name, number)
    turn = {
        leaf.name: [first[name] for name in reversed(_lineage(leaf, parts))]
        for leaf in _leaves(parts)
    }
    return tuple(sorted(turn, key=lambda name: (name not in sliced, turn[name])))


def wanted(found: PodGroup, progress: GangProgress) -> Fields:
    """Return the condition of a group that waits; once it has members placed, none, as KAI."""
    before, waits = found.status.scheduling_conditions, progress.waits
    if progress.placed:
        return {CONDITIONS: without_condition(before, UNSCHEDULABLE)}
    if waits is None:
        return {}
    told = with_condition(
        before, UNSCHEDULABLE, status="True", reason="Unschedulable",
        message=waits.message, at=waits.since,
    )  # fmt: skip
    pool = found.metadata.labels.get(NODE_POOL, "default")
    return {CONDITIONS: tuple(msgspec.structs.replace(entry, node_pool=pool) for entry in told)}


def _said(found: PodGroup) -> Fields:
    return {CONDITIONS: found.status.scheduling_conditions}


def _gang_of(found: PodGroup) -> GangKey:
    own = gang_key(Kai.name, found.metadata.namespace, found.metadata.name)
    return gang_of_controller(found.metadata) or own


class Kai:
    """The dialect; stateless."""

    name = "kai"
    markers = (POD_GROUP,)
    watched = (
        Watched(
            "scheduling.run.ai",
            "v2alpha2",
            "podgroups",
            PodGroup,
            spec,
            status=GroupStatus(SCHEDULER, _gang_of, wanted, _said),
        ),
    )

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the PodGroup that the annotation names."""
        meta = pod.metadata
        named = said(meta, POD_GROUP)
        if not named:
            return None
        role = meta.labels.get(SUB_GROUP) or read(meta.labels, meta.annotations).keys.role
        return Member(gang_key(self.name, meta.namespace, named), role, pod_rank(meta))

    def spec_from_pod(self, _pod: wire.Pod) -> GangSpec | None:
        """Return ``None``: the PodGroup says it."""
        return None
