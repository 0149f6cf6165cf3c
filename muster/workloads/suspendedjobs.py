"""Jobs that Muster suspends at their creation: what they will make, and how they are resumed.

::

    created, its queue says Suspend ──► suspended, ``muster.dev/suspended-by: muster``
                                              │ the whole of it has room, or the least that it takes
                                              ▼
    its pods come ◄── running, ``muster.dev/resumed-at``, parallelism as many as have room

Only what carries the annotation is ever resumed: a user's own suspension stays, and Kueue's. A
resumed job loses it, so that somebody who suspends the job later has the last word.

A suspended job has no pods. So they are read from its templates, as what-if reads a manifest
(``muster.workloads.madegangs``), those of a TrainJob from the JobSet that is suspended with it
(``muster.workloads.jobowners``). Jobs whose pods go one by one are not suspended: holding back the
first one until the last one fits would only waste devices. Neither is what such a job makes.

A job of stages (``dependsOn``, ``startupPolicy``) is resumed when all stages have room at one time.

**Least parallelism.** The annotation stands on the Job, in a JobSet on the Job template of one
replicated job with one replica, in a RayJob or RayCluster on the pod template of one worker group
with one host a replica: its ``replicas`` are lowered, never below ``minReplicas``. A TrainJob stays
whole: its JobSet refuses another parallelism, so Trainer could not apply it (jobset v0.10,
pkg/webhooks/jobset_webhook.go, ``ValidateUpdate``). Kueue's key is obeyed as Kueue obeys it
(pkg/controller/jobs/job): completions follow only where
``kueue.x-k8s.io/job-completions-equal-parallelism`` says so. With Muster's own key they follow
where they are equal, as for every job whose indexes train together.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import msgspec

from muster.cluster.specs.gangspec import PODS_PER_JOB, GangSpec, RoleSpec
from muster.kube import names
from muster.kube.resources import KubeObject
from muster.workloads.dialect import NO_RANK
from muster.workloads.dialects.batchjob import BatchJob
from muster.workloads.dialects.ray import RayClusterSpec, WorkerGroup
from muster.workloads.jobowners import RAY_JOB, as_ray_job, train_queue
from muster.workloads.madegangs import Document, MadeGang, TemplatePods, gangs
from muster.workloads.suspendablekinds import (
    JOBSETS,
    KINDS,
    KINDS_BY_DIALECT,
    RAY_CLUSTERS,
    RAY_JOBS,
    TRAIN_JOBS,
    Path,
    SuspendableKind,
    hindrance,
    is_owned,
    value_at,
)

Json = dict[str, Any]

KUEUE_MIN: Final = "kueue.x-k8s.io/job-min-parallelism"
KUEUE_EQUAL: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"
MOST_PODS: Final = PODS_PER_JOB  # of a job; a larger one is not suspended, and not resumed
_DIGITS: Final = 9  # a parallelism is an int32


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """How far a job may be made smaller when it is resumed."""

    #: The role of the pods whose number it is.
    role: str
    #: The pods that it was asked for with, and the least that it takes.
    asked: int
    least: int
    #: How many there are now, and in which fields that is written.
    now: int
    fields: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class SuspendedJob:
    """A job that Muster suspended, or has resumed."""

    namespace: str
    name: str
    uid: str
    #: where ``suspend`` stands
    at: Path
    #: What it asks for, with the least number of members.
    spec: GangSpec
    #: Equal pods, with the numbers of their members.
    pods: tuple[tuple[TemplatePods, tuple[int, ...]], ...]
    #: How far it may be made smaller, ``None``: not at all.
    shrinkage: Shrinkage | None = None
    #: Whether it was made smaller before.
    is_lowered: bool = False
    #: Seconds since the epoch, ``None`` while it is suspended.
    resumed_at: float | None = None
    #: UID of the object that describes its gang, where another one does than the job.
    made_uid: str = ""

    @property
    def describer(self) -> str:
        """The UID of the object that describes its gang."""
        return self.made_uid or self.uid

    @property
    def is_renamed(self) -> bool:
        """Whether its pods come in the gang of another name: that of a RayCluster made then."""
        return self.spec.key.startswith(f"{RAY_JOB}/")

    @property
    def size(self) -> int:
        """How many pods it makes."""
        return sum(len(numbers) for _, numbers in self.pods)

    def whole(self) -> "SuspendedJob":
        """Return the same job, to be resumed with all of its pods."""
        asked = 0 if self.shrinkage is None else self.shrinkage.asked
        return replace(self, spec=self.with_count(asked), shrinkage=None)

    def with_count(self, count: int | None) -> GangSpec:
        """Return what it asks for with ``count`` of the pods whose number may be lowered."""
        shrinkage, spec = self.shrinkage, self.spec
        if shrinkage is None or count is None:
            return spec
        more = count - shrinkage.least
        roles = tuple(
            replace(role, min_count=role.min_count + more) if role.name == shrinkage.role else role
            for role in spec.roles
        )
        size = None if spec.size is None else spec.size - shrinkage.asked + count
        return replace(spec, min_count=spec.min_count + more, size=size, roles=roles)


def is_suspendable(group: str, plural: str, document: Document) -> bool:
    """Return whether an object is of a kind, and such, that it can be suspended: it runs as one.

    Raises ``ValueError`` for an object that cannot be read.
    """
    if is_owned(document) or hindrance(group, plural, document):
        return False
    return (group, plural) == TRAIN_JOBS or _gang(group, plural, document) is not None


def queue_of(group: str, plural: str, document: Document) -> str:
    """Return the queue that an object names which runs as one, "" for none.

    What another job makes that decides for it names none. Raises ``ValueError`` for an object that
    cannot be read.
    """
    if is_owned(document):
        return ""
    if (group, plural) == TRAIN_JOBS:
        return train_queue(document)
    gang = _gang(group, plural, document)
    return "" if gang is None or gang.spec is None else gang.spec.queue


def is_suspended(kind: SuspendableKind, document: Document) -> bool:
    """Return whether an object is suspended, by whomever."""
    return value_at(document, kind.at) is True


def read(
    group: str, plural: str, found: KubeObject, made: KubeObject | None = None
) -> SuspendedJob | None:
    """Return what a watched object is to Muster: suspended or resumed by it; else ``None``.

    ``made``: the JobSet of a TrainJob; without it nothing is known of its gang. Raises
    ``ValueError`` for an object that cannot be read.
    """
    notes: Mapping[str, str] = getattr(found.metadata, "annotations", {})
    if names.SUSPENDED_BY not in notes and names.RESUMED_AT not in notes:
        return None
    kind = KINDS.get((group, plural))
    if kind is None:
        return None
    document: Json = msgspec.json.decode(msgspec.json.encode(found))
    when = resumed_at(found)
    if is_suspended(kind, document):
        if notes.get(names.SUSPENDED_BY) != names.MUSTER:
            return None
        when = None
    elif when is None:
        return None
    if (group, plural) == TRAIN_JOBS:
        return None if made is None else _with_jobset(kind, document, made, when)
    return _job(group, plural, kind, document, when)


def _with_jobset(
    kind: SuspendableKind, document: Json, made: KubeObject, when: float | None
) -> SuspendedJob | None:
    """Return a TrainJob with the pods of its JobSet."""
    job = _job(*JOBSETS, kind, msgspec.json.decode(msgspec.json.encode(made)), when)
    if job is None:
        return None
    uid = document["metadata"].get("uid", "")
    return replace(job.whole(), uid=uid, is_lowered=False, made_uid=made.metadata.uid)


def _job(
    group: str, plural: str, kind: SuspendableKind, document: Json, when: float | None
) -> SuspendedJob | None:
    shrinkage = None if when is not None else _shrinkage(group, plural, document)
    for field in () if shrinkage is None else shrinkage.fields:
        _put(document, field, shrinkage.asked if shrinkage is not None else 0)
    gang = _gang(group, plural, document)
    if gang is None or gang.spec is None:
        return None
    meta, spec = document["metadata"], gang.spec
    return SuspendedJob(
        meta.get("namespace", ""),
        meta.get("name", ""),
        meta.get("uid", ""),
        kind.at,
        spec if shrinkage is None else _least(spec, shrinkage),
        tuple(_numbered(spec, gang.pods)),
        shrinkage,
        names.ASKED_PARALLELISM in meta.get("annotations", ()),
        when,
    )


def _gang(group: str, plural: str, document: Document) -> MadeGang | None:
    """Return the one gang that an object makes by itself, ``None``: none, several, or another's."""
    if (group, plural) not in KINDS:
        return None
    meta = document.get("metadata")
    namespace = meta.get("namespace", "") if isinstance(meta, Mapping) else ""
    named = {**document, "apiVersion": f"{group}/", "kind": plural.removesuffix("s")}
    made = gangs([_all_stages(named)], namespace)
    if len(made) != 1 or made[0].spec is None or made[0].spec.dialect not in KINDS_BY_DIALECT:
        return None
    if made[0].size > MOST_PODS:
        return None
    return as_ray_job(made[0], document) if (group, plural) == RAY_JOBS else made[0]


def _all_stages(document: Document) -> Document:
    """Return a JobSet without the order of its jobs: room is needed for all of them."""
    spec = document.get("spec")
    if document["kind"] != "jobset" or not isinstance(spec, Mapping):
        return document
    jobs = spec.get("replicatedJobs")
    if isinstance(jobs, list):
        jobs = [
            {key: part for key, part in job.items() if key != "dependsOn"}
            if isinstance(job, Mapping)
            else job
            for job in jobs
        ]
    kept = {key: part for key, part in spec.items() if key != "startupPolicy"}
    return {**document, "spec": {**kept, "replicatedJobs": jobs}}


# -- members -------------------------------------------------------------------------------------


def _numbered(
    spec: GangSpec, pods: Sequence[TemplatePods]
) -> Iterator[tuple[TemplatePods, tuple[int, ...]]]:
    """Yield equal pods with the numbers that their dialect will give them, as far as it does."""
    size = sum(each.count for each in pods)
    numbers: Iterator[int] = iter([NO_RANK] * size)
    if spec.rank_runs and sum(jobs * count for jobs, count in spec.rank_runs) == size:
        numbers = (job * PODS_PER_JOB + index for job, index in _in_runs(spec.rank_runs))
    elif spec.dialect == BatchJob.name:
        numbers = iter(range(size))
    for each in pods:
        yield each, tuple(next(numbers) for _ in range(each.count))


def _in_runs(runs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield (job, index) of each member, in order."""
    sizes = [pods for jobs, pods in runs for _ in range(jobs)]
    for job, pods in enumerate(sizes):
        yield from ((job, index) for index in range(pods))


# -- fewer members than asked for ----------------------------------------------------------------


def _least(spec: GangSpec, shrinkage: Shrinkage) -> GangSpec:
    """Return a gang's specification with the least number of members."""
    of_role = next((r.min_count for r in spec.roles if r.name == shrinkage.role), None)
    others = (spec.size or 0) - shrinkage.asked
    needed = spec.min_count - others if of_role is None else of_role
    lost = max(needed - shrinkage.least, 0)
    roles = tuple(
        RoleSpec(role.name, role.min_count - lost) if role.name == shrinkage.role else role
        for role in spec.roles
    )
    return replace(spec, min_count=spec.min_count - lost, roles=roles)


def _shrinkage(group: str, plural: str, document: Json) -> Shrinkage | None:
    if (group, plural) == ("batch", "jobs"):
        return _of_job(document, (), "", document)
    if (group, plural) == RAY_CLUSTERS:
        return _of_cluster(document, ("spec",))
    if (group, plural) == RAY_JOBS:
        return _of_cluster(document, ("spec", "rayClusterSpec"))
    return _of_jobset(document) if (group, plural) == JOBSETS else None


def _of_cluster(document: Json, at: Path) -> Shrinkage | None:
    """Return how far a RayCluster's workers may be fewer; the autoscaler has its own minimum."""
    spec = msgspec.convert(value_at(document, at) or {}, RayClusterSpec, strict=False)
    groups = () if spec.enable_in_tree_autoscaling else enumerate(spec.worker_group_specs)
    named = ((number, group, _own_least(group)) for number, group in groups)
    found = [
        Shrinkage(
            group.group_name,
            max(_asked(document), group.replicas or 0),
            max(least, group.min_replicas),
            group.replicas or 0,
            ((*at, "workerGroupSpecs", number, "replicas"),),
        )
        for number, group, least in named
        if least and group.hosts == 1 and not group.suspend
    ]
    return found[0] if len(found) == 1 and found[0].least < found[0].asked else None


def _own_least(group: WorkerGroup) -> int:
    return _count(group.template.metadata.annotations.get(names.MIN_PARALLELISM, ""))


def _of_jobset(document: Json) -> Shrinkage | None:
    found = []
    for number, job in enumerate(document.get("spec", {}).get("replicatedJobs", ())):
        at: Path = ("spec", "replicatedJobs", number, "template")
        one = _of_job(job.get("template", {}), at, job.get("name", ""), document)
        if one is not None and job.get("replicas", 1) == 1:
            found.append(one)
    return found[0] if len(found) == 1 else None


def _of_job(job: Json, at: Path, role: str, whole: Json) -> Shrinkage | None:
    """Return how far a Job, or a template of one, may be made smaller."""
    notes, spec = job.get("metadata", {}).get("annotations", {}), job.get("spec", {})
    own, kueue = (_count(notes.get(key, "")) for key in (names.MIN_PARALLELISM, KUEUE_MIN))
    least, now = own or kueue, spec.get("parallelism", 1)
    asked = max(_asked(whole), now)
    if not 0 < least < asked:
        return None
    follows = bool(own) or notes.get(KUEUE_EQUAL) == "true"
    is_both = follows and spec.get("completions") == now
    both = ("parallelism", "completions") if is_both else ("parallelism",)
    return Shrinkage(role, asked, least, now, tuple((*at, "spec", name) for name in both))


def _asked(document: Json) -> int:
    """Return with how many pods a job was asked for before Muster lowered that, 0: it did not."""
    return _count(document["metadata"].get("annotations", {}).get(names.ASKED_PARALLELISM, ""))


def _count(text: str) -> int:
    """Return a whole number, 0 for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0


# -- what is written -----------------------------------------------------------------------------


def resumption(job: SuspendedJob, count: int | None, now: str) -> list[Json]:
    """Return the JSON patch that resumes a job, if it is as it was read.

    ``count``: how many pods it is resumed with where it may be smaller. ``now``: RFC 3339.
    """
    found = [
        _test(("metadata", "uid"), job.uid),
        _test(_note(names.SUSPENDED_BY), names.MUSTER),
        _test(job.at, True),
        {"op": "replace", "path": pointer(job.at), "value": False},
        {"op": "remove", "path": pointer(_note(names.SUSPENDED_BY))},
        {"op": "add", "path": pointer(_note(names.RESUMED_AT)), "value": now},
    ]
    if job.shrinkage is not None and count is not None:
        found += _counted(job, job.shrinkage, count)
    return found


def _counted(job: SuspendedJob, shrinkage: Shrinkage, count: int) -> Iterator[Json]:
    """Yield what writes the number of pods, and what it was before."""
    if count != shrinkage.now:
        for field in shrinkage.fields:
            yield _test(field, shrinkage.now)
            yield {"op": "replace", "path": pointer(field), "value": count}
    note = pointer(_note(names.ASKED_PARALLELISM))
    if count < shrinkage.asked:
        yield {"op": "add", "path": note, "value": str(shrinkage.asked)}
    elif job.is_lowered:
        yield {"op": "remove", "path": note}


def suspension(kind: SuspendableKind, document: Document) -> list[tuple[str, object]]:
    """Return what suspends an object that is being created: (JSON pointer, value), each added."""
    note = _note(names.SUSPENDED_BY)
    holders = [path[:depth] for path in (kind.at, note) for depth in range(1, len(path))]
    lacking = [path for path in holders if not isinstance(value_at(document, path), Mapping)]
    found: list[tuple[Path, object]] = [(path, {}) for path in lacking]
    found += [(kind.at, True), (note, names.MUSTER)]
    return [(pointer(path), value) for path, value in found]


def stands_suspended(group: str, plural: str, found: KubeObject) -> bool:
    """Return whether an object is suspended by Muster: its pods end, or have ended."""
    kind, notes = KINDS.get((group, plural)), getattr(found.metadata, "annotations", {})
    if kind is None or notes.get(names.SUSPENDED_BY) != names.MUSTER:
        return False
    return is_suspended(kind, msgspec.json.decode(msgspec.json.encode(found)))


def resumed_at(found: KubeObject) -> float | None:
    """Return when Muster resumed an object, in seconds since the epoch, ``None``: it did not."""
    notes: Mapping[str, str] = getattr(found.metadata, "annotations", {})
    return _seconds(notes.get(names.RESUMED_AT, ""))


def suspension_again(group: str, plural: str, found: KubeObject) -> Json:
    """Return the merge patch that suspends a running object, until it has room again.

    Empty for one that is no job that runs as one, or that is suspended already. It is for the
    version that was read: another one is a conflict. Raises ``ValueError`` for an object that
    cannot be read.
    """
    document: Json = msgspec.json.decode(msgspec.json.encode(found))
    kind = KINDS.get((group, plural))
    if kind is None or is_suspended(kind, document) or not is_suspendable(group, plural, document):
        return {}
    meta = found.metadata
    patch: Json = {
        "metadata": {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "annotations": {names.SUSPENDED_BY: names.MUSTER, names.RESUMED_AT: None},
        }
    }
    holder = patch
    for step in kind.at[:-1]:
        holder = holder.setdefault(str(step), {})
    holder[str(kind.at[-1])] = True
    return patch


def pointer(path: Path) -> str:
    """Return a path as RFC 6901 writes it."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _put(document: Json, path: Path, value: object) -> None:
    holder = value_at(document, path[:-1])
    if isinstance(holder, dict):
        holder[path[-1]] = value


def _test(path: Path, value: object) -> Json:
    return {"op": "test", "path": pointer(path), "value": value}


def _note(key: str) -> Path:
    return ("metadata", "annotations", key)


def _seconds(text: str) -> float | None:
    """Return a time in seconds since the epoch, ``None`` for what is none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
