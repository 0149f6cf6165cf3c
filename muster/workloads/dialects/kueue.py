"""Kueue's groups of plain pods (pkg/controller/jobs/pod/constants/constants.go).

Pods carry the label (from v1beta2 on also the annotation)
``kueue.x-k8s.io/pod-group-name`` and the annotation ``…/pod-group-total-count``: the group
is that many pods, all or nothing. Pods of a *serving* group (``…/pod-group-serving``, set
for StatefulSets and LeaderWorkerSets) come one after the other, each when the one before it
is ready, so none of them waits for the rest.

Kueue decides *whether* a group may run, Muster *where*. While one of Kueue's scheduling
gates (``…/admission``, ``…/topology``, ``…/elastic-job``) stands on a pod it cannot be
planned: that holds for the gates of anybody, so nothing here mentions them. Topology and
queue are read for every dialect (``muster.workloads.keys.foreignwishes``).
"""

from typing import Final

from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads.dialect import NO_RANK, Member, Watched, created, gang_key
from muster.workloads.dialects.podgroups import number, said
from muster.workloads.keys.labels import overlay, read
from muster.workloads.keys.ranks import index, pod_rank

GROUP_NAME: Final = "kueue.x-k8s.io/pod-group-name"
TOTAL_COUNT: Final = "kueue.x-k8s.io/pod-group-total-count"
SERVING: Final = "kueue.x-k8s.io/pod-group-serving"
POD_SET: Final = "kueue.x-k8s.io/podset"
POD_INDEX: Final = "kueue.x-k8s.io/pod-group-pod-index"
POD_INDEX_LABEL: Final = "kueue.x-k8s.io/pod-group-pod-index-label"  # names another label


class Kueue:
    """The dialect; stateless."""

    name = "kueue"
    markers = (GROUP_NAME,)
    watched: tuple[Watched[wire.Pod], ...] = ()

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the group that the pod names."""
        meta = pod.metadata
        group = said(meta, GROUP_NAME)
        if not group:
            return None
        role = meta.labels.get(POD_SET) or read(meta.labels, meta.annotations).keys.role
        return Member(gang_key(self.name, meta.namespace, group), role, _rank(meta))

    def spec_from_pod(self, pod: wire.Pod) -> GangSpec | None:
        """Return what every member repeats: the number of pods."""
        meta = pod.metadata
        group = said(meta, GROUP_NAME)
        if not group:
            return None
        field = f"metadata.annotations[{TOTAL_COUNT}]"
        size, problems = number(said(meta, TOTAL_COUNT), field)
        serves = said(meta, SERVING) == "true"
        plain = GangSpec(
            key=gang_key(self.name, meta.namespace, group),
            namespace=meta.namespace,
            name=group,
            dialect=self.name,
            min_count=1 if serves else size,
            size=size,
            submitted_at=created(meta),
            serves=serves,
            problems=problems,
            written=(("min_count", field), ("size", field)),
        )
        return overlay(plain, read(meta.labels, meta.annotations))


def _rank(meta: wire.ObjectMeta) -> int:
    """Return the index in the group, from the label that the group's pods name for it."""
    key = meta.annotations.get(POD_INDEX_LABEL, "")
    rank = index(meta, key) if key else NO_RANK
    if rank == NO_RANK:
        rank = index(meta, POD_INDEX)
    return rank if rank != NO_RANK else pod_rank(meta)
