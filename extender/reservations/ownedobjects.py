"""What TrainJobs and RayJobs make, joined with them in whatever order watches show both.

::

    TrainJob ─ suspended by Muster ─┐
                                    ├─► a job to resume, with the JobSet's pods
    JobSet ─── made by it ──────────┘

    RayJob ─── RayCluster ──► the gang in which its pods come

A JobSet is kept only until its TrainJob is known to be none that Muster suspended or has just
resumed. Of a RayCluster its gang is kept until its RayJob is gone: pods may outlive it.
"""

from dataclasses import dataclass, field
from typing import Any

from muster.cluster.specs.gangspec import GangSpec
from muster.kube.resources import KubeObject, Resource
from muster.workloads.dialects.ray import RayCluster
from muster.workloads.dialects.ray import spec as ray_spec
from muster.workloads.jobowners import DEADLINE, RayJob
from muster.workloads.keys.runtimes import within_deadline


@dataclass(frozen=True, slots=True)
class OwnedGang:
    """The gang of a RayCluster that a RayJob made."""

    #: UID of the RayCluster
    uid: str
    #: what it asks for, without the RayJob's deadline
    spec: GangSpec


@dataclass(slots=True)
class OwnedObjects:
    """JobSets and RayClusters of jobs that are suspended in their place."""

    #: TrainJobs that Muster suspended or has just resumed, by UID
    train_jobs: dict[str, tuple[Resource[Any], KubeObject]] = field(default_factory=dict)
    #: JobSets by the UID of their TrainJob
    _jobsets: dict[str, KubeObject] = field(default_factory=dict)
    #: UIDs of TrainJobs that Muster has nothing to do with
    _others: set[str] = field(default_factory=set)
    #: UIDs of the TrainJobs by those of their JobSets
    _owners: dict[str, str] = field(default_factory=dict)
    #: gangs of the latest RayClusters by the UID of their RayJob
    clusters: dict[str, OwnedGang] = field(default_factory=dict)
    #: ``activeDeadlineSeconds`` of RayJobs by UID; those without one are left out
    _deadlines: dict[str, int] = field(default_factory=dict)

    def train_job(self, resource: Resource[Any], found: KubeObject, *, is_ours: bool) -> None:
        """Note a TrainJob. ``is_ours``: whether Muster suspended it, or has just resumed it."""
        uid = found.metadata.uid
        if is_ours:
            self.train_jobs[uid] = resource, found
            self._others.discard(uid)
            return
        self.train_jobs.pop(uid, None)
        self._jobsets.pop(uid, None)
        self._others.add(uid)

    def jobset(self, owner: str, found: KubeObject) -> None:
        """Note the JobSet of a TrainJob; it may come first."""
        self._owners[found.metadata.uid] = owner
        if owner not in self._others:
            self._jobsets[owner] = found

    def made(self, owner: str) -> KubeObject | None:
        """Return the JobSet of a TrainJob, ``None`` before it is known."""
        return self._jobsets.get(owner)

    def ray_job(self, found: RayJob) -> bool:
        """Note the deadline of a RayJob; return whether it is another one than before."""
        uid, before = found.metadata.uid, self._deadlines.pop(found.metadata.uid, None)
        if found.spec.active_deadline_seconds:
            self._deadlines[uid] = found.spec.active_deadline_seconds
        return before != self._deadlines.get(uid)

    def cluster(self, owner: str, found: RayCluster) -> GangSpec | None:
        """Note the RayCluster of a RayJob; return what it asks for, ``None`` while suspended."""
        spec = ray_spec(found)
        if spec is not None:
            self.clusters[owner] = OwnedGang(found.metadata.uid, spec)
        return None if spec is None else self.in_time(owner, spec)

    def in_time(self, owner: str, spec: GangSpec) -> GangSpec:
        """Return what a RayCluster asks for, with the deadline of its RayJob, if that is known.

        KubeRay counts it from the start, and anew when the job is resumed.
        """
        return within_deadline(spec, self._deadlines.get(owner), DEADLINE)

    def gone(self, uid: str) -> str:
        """Forget a deleted object; return the UID of the TrainJob whose JobSet it was, else ""."""
        self.train_jobs.pop(uid, None)
        self._others.discard(uid)
        self.clusters.pop(uid, None)
        self._deadlines.pop(uid, None)
        owner = self._owners.pop(uid, "")
        found = self._jobsets.get(owner)
        if found is not None and found.metadata.uid == uid:
            del self._jobsets[owner]
        return owner
