"""Volcano's PodGroups (scheduling.volcano.sh/v1beta1).

Pods name their PodGroup in the annotation ``scheduling.k8s.io/group-name`` (kube-batch's
old key, which Volcano's own controllers still write) or
``scheduling.volcano.sh/group-name`` (apis, scheduling/v1beta1/labels.go). Roles are tasks
(``volcano.sh/task-spec``), ranks their indices (``volcano.sh/task-index``).

**Minima.** ``minTaskMember`` counts only while its sum does not exceed ``minMember``; else
Volcano looks at the total alone (pkg/scheduler/api/job_info.go, ``CheckTaskValid``), which
is how a job says "any eight".

**Topology.** Tiers of HyperNodes are counted from the leaves; the N-th level above the host
takes their place (``muster.workloads.keys.levels``), or the level that ``highestTierName`` names.
Each ``subGroupPolicy`` with a size is slices of the tasks that it selects, or slices of slices
(``muster.workloads.keys.gangparts``); ``matchLabelKeys`` name the label by which a controller
numbers these parts, which it does in the order of the pods' indices. Parts that do not nest, or one
that must share a domain and has no size, cannot be said and are problems, for they are promises to
the job.

**Status.** Volcano's job controller makes pods only once the PodGroup is *Inqueue*; see
``wanted`` for the phases, which are those of its scheduler (``pkg/scheduler/framework``,
``jobStatus``)::

    "" / Pending ──► Inqueue ──minMember placed──► Running ──all succeeded──► Completed
                        ▲                             │
                        └──── fewer than minMember ───┘

Its conditions as its gang plugin writes them (``OnSessionClose``), but for one thing:
*Unschedulable* is taken away once the gang is placed, and *Scheduled* when it is not any more.
Volcano leaves both there as they were, and its job controller goes on to warn of the first
(``job_controller_actions.go``, ``syncJob``).
"""

from dataclasses import replace
from typing import Final

import msgspec

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.kube import wire
from muster.workloads.dialect import Member, Watched, gang_key
from muster.workloads.dialects.podgroups import group, roles_of, said
from muster.workloads.groupconditions import Conditions, with_condition, without_condition
from muster.workloads.keys.gangparts import GangPart, as_slices
from muster.workloads.keys.labels import overlay, read
from muster.workloads.keys.levels import foreign, tier
from muster.workloads.keys.operatorgroups import gang_of_controller, is_operators
from muster.workloads.keys.owners import owner
from muster.workloads.keys.ranks import index
from muster.workloads.status import Fields, GangProgress, GroupStatus

SCHEDULER: Final = "volcano"
GROUP_NAMES: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
JOB_NAME: Final = "volcano.sh/job-name"
TASK: Final = "volcano.sh/task-spec"
TASK_INDEX: Final = "volcano.sh/task-index"
JOB_GROUP: Final = "batch.volcano.sh"
UNSCHEDULABLE: Final = "Unschedulable"
_TIER: Final = "spec.networkTopology.highestTierAllowed"
READY: Final = "tasks in gang are ready to be scheduled"  # the reason that Volcano gives


class NetworkTopology(wire.Wire, frozen=True):
    """Where the members of a group may be spread to."""

    mode: str = ""
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""

    def levels(self) -> tuple[str | None, str | None]:
        """Return the required and the preferred level; an empty mode is hard, as in the CRD."""
        highest = self.highest_tier_allowed
        if self.highest_tier_name and self.mode != "soft":
            return foreign(self.highest_tier_name), tier(1)
        if self.mode == "soft" or not highest:
            return None, tier(1)
        return tier(highest), tier(1) if highest > 1 else None


class Selector(wire.Wire, frozen=True):
    """What Muster reads of a meta/v1 LabelSelector."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)


class SubGroupPolicy(wire.Wire, frozen=True):
    """A way of dividing the members of a group into equal parts."""

    name: str = ""
    label_selector: Selector | None = None
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    network_topology: NetworkTopology | None = None

    def level(self) -> str | None:
        """Return the level that a part must share, None when it only should."""
        return None if self.network_topology is None else self.network_topology.levels()[0]

    @property
    def tasks(self) -> frozenset[str]:
        """The tasks that it divides, empty for all."""
        selected = {} if self.label_selector is None else self.label_selector.match_labels
        return frozenset({selected[TASK]} if TASK in selected else ())

    @property
    def minimum(self) -> int:
        """Members of so many parts as are needed."""
        return max((self.sub_group_size or 0) * (self.min_sub_groups or 0), 0)


class PodGroupSpec(wire.Wire, frozen=True):
    """What Muster reads of a PodGroup's spec."""

    min_member: int = 0
    min_task_member: dict[str, int] = msgspec.field(default_factory=dict)
    queue: str = ""
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] = ()


class PodGroupStatus(wire.Wire, frozen=True):
    """What Muster reads and writes of a PodGroup's status."""

    phase: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: Conditions = ()


class PodGroup(wire.Wire, frozen=True):
    """scheduling.volcano.sh/v1beta1 PodGroup."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


def spec(found: PodGroup) -> GangSpec | None:
    """Return the gang of a PodGroup; None for one that was made of an object that says more."""
    meta, wanted = found.metadata, found.spec
    if owner(meta, JOB_GROUP, "Job") or is_operators(meta):
        return None
    minimum = wanted.min_member or 1
    plain = group(
        Volcano.name, meta, minimum, roles=task_roles(wanted.min_task_member, minimum),
        queue=wanted.queue,
    )  # fmt: skip
    plain = with_topology(plain, wanted.network_topology, wanted.sub_group_policy)
    return overlay(plain, read(meta.labels, meta.annotations))


def task_roles(minima: dict[str, int], minimum: int) -> tuple[RoleSpec, ...]:
    """Return the tasks' minima, nothing when Volcano would look at the total alone."""
    return roles_of(minima) if sum(minima.values()) <= minimum else ()


def with_topology(
    plain: GangSpec,
    topology: NetworkTopology | None,
    parts: tuple[SubGroupPolicy, ...],
    size_field: str = "spec.subGroupPolicy[{}].subGroupSize",
    tasks: frozenset[str] = frozenset(),
) -> GangSpec:
    """Return the gang with Volcano's topology put into Muster's words.

    ``size_field``: where the size of a part stands, with ``{}`` for the part's name. ``tasks``: all
    that the gang has; empty: not known.
    """
    required, preferred = (None, None) if topology is None else topology.levels()
    written = (*plain.written, ("required_level", _TIER), ("preferred_level", _TIER))
    laid = replace(
        plain, required_level=required, preferred_level=preferred, written=written,
        min_count=max(plain.min_count, _needed(parts)),
    )  # fmt: skip
    hard = [part for part in parts if part.level() is not None]
    return _divided(laid, hard, size_field, tasks) if hard else laid


def _needed(parts: tuple[SubGroupPolicy, ...]) -> int:
    """Return the members that the parts' minima make together, each task counted once."""
    by_tasks: dict[frozenset[str], int] = {}
    for part in parts:
        by_tasks[part.tasks] = max(by_tasks.get(part.tasks, 0), part.minimum)
    everyone = by_tasks.pop(frozenset(), 0)
    return max(everyone, sum(by_tasks.values()))


def _divided(
    laid: GangSpec, hard: list[SubGroupPolicy], size_field: str, tasks: frozenset[str]
) -> GangSpec:
    """Return the gang in slices."""
    named = tasks or frozenset[str]().union(*(part.tasks for part in hard))
    apart = [
        GangPart(part.name, part.tasks, part.sub_group_size or 0, part.level() or "")
        for part in hard
    ]
    sliced = as_slices(laid, apart, named if tasks else named | {""})
    if sliced is None:
        names = ", ".join(part.name for part in hard)
        problem = (
            f"spec.subGroupPolicy: {names}: parts have a size, and one level or sizes that nest: "
            "give them sizes that are multiples of each other, and disjoint tasks"
        )
        return replace(laid, problems=(*laid.problems, problem))
    innermost = min(hard, key=lambda part: part.sub_group_size or 0)
    field = size_field.format(innermost.name)
    level_field = f"{field.rpartition('.')[0]}.networkTopology"
    places = (("slice_size", field), ("slice_level", level_field))
    return replace(sliced, written=(*places, *laid.written))


def wanted(found: PodGroup, progress: GangProgress) -> Fields:
    """Return phase and counts as Volcano's scheduler would write them; drawn above."""
    return {
        "running": progress.bound,
        "succeeded": progress.succeeded,
        "failed": progress.failed,
        "phase": _phase(found, progress),
        "conditions": _conditions(found, progress),
    }


def _is_placed(found: PodGroup, progress: GangProgress) -> bool:
    return progress.is_placed(found.spec.min_member)


def _phase(found: PodGroup, progress: GangProgress) -> str:
    if not _is_placed(found, progress):
        return "Inqueue"
    done = progress.ended and progress.succeeded == progress.placed
    return "Completed" if done else "Running"


def _conditions(found: PodGroup, progress: GangProgress) -> Conditions:
    before, waits = found.status.conditions, progress.waits
    if _is_placed(found, progress):
        return with_condition(
            without_condition(before, UNSCHEDULABLE), "Scheduled",
            status="True", reason=READY, message="", at=progress.now,
        )  # fmt: skip
    before = without_condition(before, "Scheduled")
    if waits is None:
        return before
    reason = "NotEnoughTasks" if waits.cause == "MembersMissing" else "NotEnoughResources"
    return with_condition(
        before, UNSCHEDULABLE, status="True", reason=reason, message=waits.message, at=waits.since
    )


def _said(found: PodGroup) -> Fields:
    now = found.status
    return {
        "phase": now.phase,
        "running": now.running,
        "succeeded": now.succeeded,
        "failed": now.failed,
        "conditions": now.conditions,
    }


def gang_of(found: PodGroup) -> GangKey:
    """Return the gang that a PodGroup stands for: its own, or that of the Job that made it."""
    job = owner(found.metadata, JOB_GROUP, "Job")
    if job:
        return gang_key("volcano-job", found.metadata.namespace, job)
    own = gang_key(Volcano.name, found.metadata.namespace, found.metadata.name)
    return gang_of_controller(found.metadata) or own


class Volcano:
    """The dialect of PodGroups; stateless. Pods of Volcano Jobs are ``dialects.volcanojob``'s."""

    name = "volcano"
    markers = GROUP_NAMES
    watched = (
        Watched(
            "scheduling.volcano.sh",
            "v1beta1",
            "podgroups",
            PodGroup,
            spec,
            status=GroupStatus(SCHEDULER, gang_of, wanted, _said),
        ),
    )

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the PodGroup that the pod names."""
        meta = pod.metadata
        named = said(meta, *GROUP_NAMES)
        if not named or said(meta, JOB_NAME):
            return None
        role = said(meta, TASK) or read(meta.labels, meta.annotations).keys.role
        return Member(gang_key(self.name, meta.namespace, named), role, index(meta, TASK_INDEX))

    def spec_from_pod(self, _pod: wire.Pod) -> GangSpec | None:
        """Return ``None``: the PodGroup says it."""
        return None
