"""Members of gangs that come from batch Jobs: how many of them are still to run.

An object that describes a gang says how many members it begins with. The Jobs that make the
members know how many of them succeeded, and count those whose pods are gone: deleted by a TTL, by
hand, or by a suspension. The same rule as of an Indexed Job by itself
(``muster.workloads.dialects.batchjob``) holds for a gang of several Jobs::

    JobSet, workers 2 Jobs of 4    needed 8
    ├─ Job 0: 3 of 4 succeeded     needed 1 + 4, whether the pods of those three are there or not
    └─ suspended and resumed       five pods come, and they are all of the gang

Which gang the pods of a Job are in is read from its template, as their own labels will say.
"""

from dataclasses import dataclass, field, replace
from typing import Final

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.kube import wire
from muster.workloads.dialects.batchjob import Job
from muster.workloads.dialects.jobset import JobSets
from muster.workloads.registry import speaks_for

_ALL_FROM_JOBS: Final = JobSets.name
"""Dialect of gangs all of whose members Jobs make, though some of the Jobs may come later."""


@dataclass(frozen=True, slots=True)
class JobMembers:
    """What one Job adds to a gang that another object, or its pods, describe."""

    gang: GangKey
    role: str
    #: pods that run at one time
    pods: int
    #: pods that will still run at one time
    left: int


def members(job: Job) -> JobMembers | None:
    """Return what a Job adds to a gang; ``None``: its pods are in none, or in its own."""
    template = job.spec.template
    meta = wire.ObjectMeta(
        name=job.metadata.name,
        namespace=job.metadata.namespace,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        owner_references=(
            wire.OwnerReference(
                api_version="batch/v1", kind="Job", name=job.metadata.name, controller=True
            ),
        ),
    )
    found = speaks_for(wire.Pod(metadata=meta, spec=template.spec))
    if found is None:
        return None
    member = found[1]
    return JobMembers(member.key, member.role, max(job.spec.pods(), 0), job.unfinished())


@dataclass(slots=True)
class MemberJobs:
    """The Jobs of gangs."""

    _jobs: dict[str, JobMembers] = field(default_factory=dict)
    #: Jobs by UID, of each gang.
    gangs: dict[GangKey, dict[str, JobMembers]] = field(default_factory=dict)
    #: What these gangs asked for before any member succeeded.
    specs: dict[GangKey, GangSpec] = field(default_factory=dict)

    def seen(self, uid: str, now: JobMembers | None) -> tuple[GangKey, ...]:
        """Take a Job over (``None``: it is in no gang, or gone); return the gangs that change."""
        before = self._jobs.get(uid)
        if before == now:
            return ()
        if before is not None:
            del self._jobs[uid]
            jobs = self.gangs[before.gang]
            del jobs[uid]
            if not jobs:
                del self.gangs[before.gang]
        if now is not None:
            self._jobs[uid] = now
            self.gangs.setdefault(now.gang, {})[uid] = now
        return tuple(dict.fromkeys(each.gang for each in (before, now) if each is not None))

    def of(self, key: GangKey) -> list[JobMembers]:
        """Return the Jobs of a gang that are known."""
        return list(self.gangs.get(key, {}).values())

    def remaining(self, stated: GangSpec) -> GangSpec:
        """Return what a gang asks for now; ``stated``: with all its members."""
        jobs = self.gangs.get(stated.key)
        if jobs is None:
            self.specs.pop(stated.key, None)
            return stated
        self.specs[stated.key] = stated
        return _remaining(stated, list(jobs.values()))

    def stated(self, key: GangKey, told: GangSpec | None) -> GangSpec | None:
        """Return what a gang asks for with all its members; ``told``: what it asks for now."""
        return self.specs.get(key, told)

    def gone(self, key: GangKey) -> None:
        """Forget what a gang asked for."""
        self.specs.pop(key, None)


def _remaining(stated: GangSpec, jobs: list[JobMembers]) -> GangSpec:
    """Return a gang's specification less the members that will not come again.

    Where others than Jobs make members, too, nothing is changed: who of them succeeded, only pods
    that are there can tell.
    """
    made = sum(job.pods for job in jobs)
    if stated.dialect != _ALL_FROM_JOBS and made < max(stated.min_count, stated.size or 0):
        return stated
    roles = tuple(
        RoleSpec(role.name, _left(role.min_count, [job for job in jobs if job.role == role.name]))
        for role in stated.roles
    )
    counts = sum(role.min_count for role in stated.roles) == stated.min_count
    left = _left(stated.min_count, jobs)
    if counts and roles:
        left = sum(role.min_count for role in roles)
    return replace(
        stated,
        min_count=max(left, min(stated.min_count, 1)),  # a status is late
        roles=tuple(role for role in roles if role.min_count),
        min_is_remaining=True,
    )


def _left(minimum: int, jobs: list[JobMembers]) -> int:
    """Return how many of ``minimum`` members are still to run; Jobs to come have all of theirs."""
    to_come = max(minimum - sum(job.pods for job in jobs), 0)
    return min(minimum, sum(job.left for job in jobs) + to_come)
