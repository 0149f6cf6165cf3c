"""Kubernetes' own groups (scheduling.k8s.io; KEP-4671, KEP-5832, KEP-5732).

==========  ===================================  ==========================================
Kubernetes  on the pod                           objects
==========  ===================================  ==========================================
1.35        ``spec.workloadRef`` {name,          v1alpha1 Workload: ``podGroups[]`` with
            podGroup, podGroupReplicaKey}        ``policy.gang.minCount`` or ``policy.basic``
1.36        ``spec.schedulingGroup``             v1alpha2 PodGroup: ``schedulingPolicy``,
            {podGroupName}                       ``schedulingConstraints.topology[].key``
1.37        the same                             v1alpha3, v1beta1 PodGroup, the same fields
==========  ===================================  ==========================================

A Workload's pod group is a template: pods with different replica keys are different gangs
that all copy it. A *basic* policy makes no gang: each pod goes when it comes.

**Giving way** (KEP-5710; staging/src/k8s.io/api/scheduling/v1alpha3/types.go, ``DisruptionMode``).
A group of mode ``all`` (``PodGroup`` in v1alpha2) ends whole or not at all; of any other, and
without a mode, members above the minimum may end by themselves. ``preemptionPolicy: Never``: it
makes nobody give way.

The topology keys are required levels. ``CompositePodGroup`` (1.37 alpha) is not read: its
PodGroups are gangs of their own.

**Status.** kube-scheduler says in a PodGroup's condition what became of its pods, and nothing
while a gate keeps them from it. In that time Muster says why they wait; once the pods are let go
kube-scheduler overwrites it (pkg/scheduler/schedule_one_podgroup.go), and where it does not
(it has bound them one by one) Muster does.
"""

from dataclasses import replace
from typing import Final

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads.dialect import Member, Watched, created, gang_key
from muster.workloads.dialects.podgroups import group
from muster.workloads.groupconditions import Conditions, with_condition
from muster.workloads.keys.labels import overlay, read
from muster.workloads.keys.levels import foreign
from muster.workloads.keys.ranks import pod_rank
from muster.workloads.status import Fields, GangProgress, GroupStatus

# 1.37 gave the condition another name (api/scheduling/v1alpha3/types.go).
_SCHEDULED: Final = {"v1alpha2": "PodGroupScheduled"}
_TOPOLOGY: Final = "spec.schedulingConstraints.topology"


class GangPolicy(wire.Wire, frozen=True):
    """All or nothing, for so many pods."""

    min_count: int = 1


class Policy(wire.Wire, frozen=True):
    """How the pods of a group are scheduled; without ``gang`` one by one."""

    gang: GangPolicy | None = None

    @property
    def minimum(self) -> int:
        """Members that must be placed together."""
        return 1 if self.gang is None else self.gang.min_count


class TopologyKey(wire.Wire, frozen=True):
    """A node label whose value all members share."""

    key: str = ""


class Constraints(wire.Wire, frozen=True):
    """Where the members of a group may be."""

    topology: tuple[TopologyKey, ...] = ()


class DisruptionMode(wire.Wire, frozen=True):
    """How the members of a group end; v1alpha2 has a word for it."""

    all: dict[str, object] | None = None


class PodGroupSpec(wire.Wire, frozen=True):
    """What Muster reads of a PodGroup's spec."""

    scheduling_policy: Policy = Policy()
    scheduling_constraints: Constraints | None = None
    disruption_mode: DisruptionMode | str | None = None
    preemption_policy: str = ""

    @property
    def ends_whole(self) -> bool:
        """Whether its pods end together only."""
        mode = self.disruption_mode
        return mode.all is not None if isinstance(mode, DisruptionMode) else mode == "PodGroup"


class PodGroupStatus(wire.Wire, frozen=True):
    """What Muster reads and writes of a PodGroup's status."""

    conditions: Conditions = ()


class PodGroup(wire.Wire, frozen=True):
    """scheduling.k8s.io/v1alpha2, v1alpha3 and v1beta1 PodGroup."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class WorkloadGroup(wire.Wire, frozen=True):
    """A pod group of a Workload."""

    name: str = ""
    policy: Policy = Policy()


class WorkloadSpec(wire.Wire, frozen=True):
    """What Muster reads of a Workload's spec."""

    pod_groups: tuple[WorkloadGroup, ...] = ()


class Workload(wire.Wire, frozen=True):
    """scheduling.k8s.io/v1alpha1 Workload."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()


def spec(found: PodGroup) -> GangSpec:
    """Return the gang of a PodGroup."""
    field = "spec.schedulingPolicy.gang.minCount"
    plain = group(Native.name, found.metadata, found.spec.scheduling_policy.minimum, field=field)
    keys = found.spec.scheduling_constraints
    terms = () if keys is None else keys.topology
    level = foreign(terms[0].key) if terms else None
    written = (*plain.written, ("required_level", _TOPOLOGY))
    laid = replace(
        plain,
        required_level=level,
        written=written,
        ends_whole=found.spec.ends_whole,
        preempts=found.spec.preemption_policy != "Never",
    )
    if len(terms) > 1:
        problem = f"{_TOPOLOGY}: {len(terms)} terms; Muster keeps one"
        laid = replace(laid, problems=(*laid.problems, problem))
    return overlay(laid, read(found.metadata.labels, found.metadata.annotations))


def workload_specs(found: Workload) -> tuple[GangSpec, ...]:
    """Return one description for each pod group of a Workload."""
    return tuple(_of_workload(found, one) for one in found.spec.pod_groups)


def _of_workload(found: Workload, one: WorkloadGroup) -> GangSpec:
    meta = found.metadata
    field = f"spec.podGroups[{one.name}].policy.gang.minCount"
    plain = group(Native.name, meta, one.policy.minimum, field=field)
    key = _key(meta.namespace, meta.name, one.name)
    named = replace(plain, key=key, name=key.rpartition("/")[2], submitted_at=created(meta))
    return overlay(named, read(meta.labels, meta.annotations))


def _key(namespace: str, workload: str, pod_group: str, replica: str = "") -> GangKey:
    """Return the key of a Workload's pod group; ``:`` cannot occur in the names of either."""
    name = f"{workload}:{pod_group}:{replica}" if replica else f"{workload}:{pod_group}"
    return gang_key(Native.name, namespace, name)


def wanted(found: PodGroup, progress: GangProgress) -> Fields:
    """Return the condition of a gang that waits; of a placed one only where it says otherwise."""
    before, waits = found.status.conditions, progress.waits
    kind = _SCHEDULED.get(progress.version, "PodGroupInitiallyScheduled")
    now = next((entry.status for entry in before if entry.type == kind), "")
    is_placed = progress.is_placed(found.spec.scheduling_policy.minimum)
    if is_placed and now == "False":
        told = with_condition(
            before, kind, status="True", reason="Scheduled", message="", at=progress.now
        )
    elif waits is not None and not is_placed and now != "True":
        told = with_condition(
            before, kind, status="False", reason="Unschedulable",
            message=waits.message, at=waits.since,
        )  # fmt: skip
    else:
        return {}
    return {"conditions": told}


def _said(found: PodGroup) -> Fields:
    return {"conditions": found.status.conditions}


def _gang_of(found: PodGroup) -> GangKey:
    return gang_key(Native.name, found.metadata.namespace, found.metadata.name)


class Native:
    """The dialect; stateless. It goes by fields of the spec, so it is always asked."""

    name = "native"
    markers: tuple[str, ...] = ()
    watched = (
        Watched(
            "scheduling.k8s.io", "v1beta1", "podgroups", PodGroup, spec,
            others=("v1alpha3", "v1alpha2"), status=GroupStatus(None, _gang_of, wanted, _said),
        ),
        Watched("scheduling.k8s.io", "v1alpha1", "workloads", Workload, workload_specs),
    )  # fmt: skip

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the group that the pod's spec names."""
        native, reference = pod.spec.scheduling_group, pod.spec.workload_ref
        if native is not None and native.pod_group_name:
            key = gang_key(self.name, pod.metadata.namespace, native.pod_group_name)
            return Member(key, _role(pod), pod_rank(pod.metadata))
        if reference is None or not reference.name or not reference.pod_group:
            return None
        return _referred(pod, reference)

    def spec_from_pod(self, _pod: wire.Pod) -> GangSpec | None:
        """Return ``None``: the object says it."""
        return None


def _referred(pod: wire.Pod, to: wire.WorkloadReference) -> Member:
    """Return the place in a Workload's pod group, which is a template for its replicas."""
    namespace = pod.metadata.namespace
    key = _key(namespace, to.name, to.pod_group, to.pod_group_replica_key)
    template = _key(namespace, to.name, to.pod_group) if to.pod_group_replica_key else None
    return Member(key, _role(pod), pod_rank(pod.metadata), template)


def _role(pod: wire.Pod) -> str:
    return read(pod.metadata.labels, pod.metadata.annotations).keys.role
