"""The coscheduling plugin's dialect (kubernetes-sigs/scheduler-plugins).

Pods carry the label ``scheduling.x-k8s.io/pod-group``; a PodGroup of that name in the
pod's namespace says ``minMember`` (apis/scheduling/v1alpha1/types.go).

``scheduleTimeoutSeconds`` bounds how long the plugin lets members hold their nodes while
the rest is missing. Muster holds nothing until the whole gang is planned, so there is
nothing to bound; the field is read and checked only.

**Status.** The plugin's controller keeps the phases. Its older versions wait for the
scheduler to move a complete group from *PreScheduling* on and to count
``status.scheduled`` (pkg/controllers/podgroup_controller.go up to v0.26); newer ones count
the pods themselves and drop that field::

    Pending ─controller► PreScheduling ─Muster► Scheduling ─controller, by scheduled► Scheduled

Topology and queue are read from ``muster.dev/`` keys on the PodGroup, not on its pods:
one object speaks for the gang.
"""

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads.dialect import Member, Watched, created, gang_key
from muster.workloads.keys.labels import overlay, read
from muster.workloads.keys.operatorgroups import gang_of_controller, is_operators
from muster.workloads.keys.ranks import pod_rank
from muster.workloads.keys.userkeys import COUNT_RULE, MAX_MEMBERS
from muster.workloads.status import Fields, GangProgress, GroupStatus

POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
SCHEDULER = "scheduler-plugins-scheduler"  # the name in its installation manifests
_AFTER_PENDING = frozenset({"PreScheduling", "Scheduling", "Scheduled", "Running"})


class PodGroupSpec(wire.Wire, frozen=True):
    """What Muster reads of a PodGroup's spec."""

    min_member: int = 1
    schedule_timeout_seconds: int | None = None


class PodGroupStatus(wire.Wire, frozen=True):
    """What Muster reads and writes of a PodGroup's status."""

    phase: str = ""
    scheduled: int = 0


class PodGroup(wire.Wire, frozen=True):
    """scheduling.x-k8s.io/v1alpha1 PodGroup."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


def spec(group: PodGroup) -> GangSpec | None:
    """Return the gang of a PodGroup. Its size is unknown: members beyond the minimum may come.

    ``None`` for one that an operator made of an object that says more.
    """
    meta, members = group.metadata, group.spec.min_member
    if is_operators(meta):
        return None
    plain = GangSpec(
        key=gang_key(Coscheduling.name, meta.namespace, meta.name),
        namespace=meta.namespace,
        name=meta.name,
        dialect=Coscheduling.name,
        min_count=min(max(members, 1), MAX_MEMBERS),
        submitted_at=created(meta),
        problems=tuple(_problems(group)),
        written=(("min_count", "spec.minMember"),),
    )
    return overlay(plain, read(meta.labels, meta.annotations))


def wanted(group: PodGroup, progress: GangProgress) -> Fields:
    """Return the scheduler's part of the status; nothing before the group is complete."""
    if group.status.phase not in _AFTER_PENDING:
        return {}
    phase = group.status.phase
    return {
        "phase": "Scheduling" if phase == "PreScheduling" else phase,
        "scheduled": progress.placed,
    }


def _said(group: PodGroup) -> Fields:
    return {"phase": group.status.phase, "scheduled": group.status.scheduled}


def _gang_of(group: PodGroup) -> GangKey:
    own = gang_key(Coscheduling.name, group.metadata.namespace, group.metadata.name)
    return gang_of_controller(group.metadata) or own


def _problems(group: PodGroup) -> list[str]:
    """Return what the CRD's schema lets through and no gang can be."""
    found = []
    if not 1 <= group.spec.min_member <= MAX_MEMBERS:
        found.append(f'spec.minMember: "{group.spec.min_member}" is not allowed: {COUNT_RULE}')
    timeout = group.spec.schedule_timeout_seconds
    if timeout is not None and timeout < 0:
        found.append(f'spec.scheduleTimeoutSeconds: "{timeout}" is not allowed: 0 or more seconds')
    return found


class Coscheduling:
    """The dialect; stateless."""

    name = "coscheduling"
    markers = (POD_GROUP_LABEL,)
    watched = (
        Watched(
            "scheduling.x-k8s.io",
            "v1alpha1",
            "podgroups",
            PodGroup,
            spec,
            status=GroupStatus(SCHEDULER, _gang_of, wanted, _said),
        ),
    )

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the PodGroup that the label names."""
        group = pod.metadata.labels.get(POD_GROUP_LABEL, "")
        if not group:
            return None
        role = read(pod.metadata.labels, pod.metadata.annotations).keys.role
        key = gang_key(self.name, pod.metadata.namespace, group)
        return Member(key, role, pod_rank(pod.metadata))

    def spec_from_pod(self, _pod: wire.Pod) -> GangSpec | None:
        """Return ``None``: the PodGroup says it."""
        return None
