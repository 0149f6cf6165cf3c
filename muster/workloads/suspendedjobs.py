"""Jobs that Muster suspends at their creation: what they will make, and how they are resumed.

::

    created, its queue says Suspend ──► suspended, ``muster.dev/suspended-by: muster``
                                              │ the whole of it has room, or the least that it takes
                                              ▼
    its pods come ◄── running, ``muster.dev/resumed-at``, parallelism as many as have room

Only what carries the annotation is ever resumed: a user's own suspension stays, and Kueue's. A
resumed job loses it, so that somebody who suspends the job later has the last word.

A suspended job has no pods. So they are read from its templates, as what-if reads a manifest
(``muster.workloads.madegangs``). Jobs whose pods go one by one are not suspended: holding back the
first one until the last one fits would only waste devices.

**Least parallelism.** The annotation stands on the Job, in a JobSet on the Job template of one
replicated job with one replica. Kueue's is obeyed as Kueue obeys it (pkg/controller/jobs/job):
completions follow only where ``kueue.x-k8s.io/job-completions-equal-parallelism`` says so. With
Muster's own key they follow where they are equal, as for every job whose indexes train together.
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
from muster.workloads.dialects.jobset import JobSets
from muster.workloads.dialects.kubeflow import GROUP, KUBEFLOW
from muster.workloads.dialects.ray import RayClusters
from muster.workloads.madegangs import Document, MadeGang, TemplatePods, gangs

Path = tuple[str | int, ...]
Json = dict[str, Any]

KUEUE_MIN: Final = "kueue.x-k8s.io/job-min-parallelism"
KUEUE_EQUAL: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"
MOST_PODS: Final = PODS_PER_JOB  # of a job; a larger one is not suspended, and not resumed
_DIGITS: Final = 9  # a parallelism is an int32


@dataclass(frozen=True, slots=True)
class SuspendableKind:
    """A kind whose objects can be suspended."""

    kind: str
    #: where ``suspend`` stands
    at: Path = ("spec", "suspend")


_KUBEFLOW: Final = {
    "pytorchjob": "PyTorchJob", "tfjob": "TFJob", "mpijob": "MPIJob",
    "xgboostjob": "XGBoostJob", "paddlejob": "PaddleJob", "jaxjob": "JAXJob",
}  # fmt: skip
KINDS: Final[Mapping[tuple[str, str], SuspendableKind]] = {
    ("batch", "jobs"): SuspendableKind("Job"),
    ("jobset.x-k8s.io", "jobsets"): SuspendableKind("JobSet"),
    ("ray.io", "rayclusters"): SuspendableKind("RayCluster"),
    **{
        (GROUP, f"{one.name}s"): SuspendableKind(
            _KUBEFLOW[one.name], ("spec", "runPolicy", "suspend")
        )
        for one in KUBEFLOW
    },
}
"""(group, plural) → a kind that the webhook suspends and the extender resumes."""
KINDS_BY_DIALECT: Final[Mapping[str, tuple[str, str]]] = {
    BatchJob.name: ("batch", "jobs"),
    JobSets.name: ("jobset.x-k8s.io", "jobsets"),
    RayClusters.name: ("ray.io", "rayclusters"),
    **{one.name: (GROUP, f"{one.name}s") for one in KUBEFLOW},
}
"""Dialect of a gang → the (group, plural) of its object."""


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
    return _gang(group, plural, document) is not None


def queue_of(group: str, plural: str, document: Document) -> str:
    """Return the queue that an object names which can be suspended, "" for none.

    Raises ``ValueError`` for an object that cannot be read.
    """
    gang = _gang(group, plural, document)
    return "" if gang is None or gang.spec is None else gang.spec.queue


def is_suspended(kind: SuspendableKind, document: Document) -> bool:
    """Return whether an object is suspended, by whomever."""
    return value_at(document, kind.at) is True


def read(group: str, plural: str, found: KubeObject) -> SuspendedJob | None:
    """Return what a watched object is to Muster: suspended or resumed by it; else ``None``.

    Raises ``ValueError`` for an object that cannot be read.
    """
    notes: Mapping[str, str] = getattr(found.metadata, "annotations", {})
    if names.SUSPENDED_BY not in notes and names.RESUMED_AT not in notes:
        return None
    kind = KINDS.get((group, plural))
    if kind is None:
        return None
    document: Json = msgspec.json.decode(msgspec.json.encode(found))
    resumed_at = _seconds(notes.get(names.RESUMED_AT, ""))
    if is_suspended(kind, document):
        if notes.get(names.SUSPENDED_BY) != names.MUSTER:
            return None
        resumed_at = None
    elif resumed_at is None:
        return None
    return _job(group, plural, kind, document, resumed_at)


def _job(
    group: str, plural: str, kind: SuspendableKind, document: Json, resumed_at: float | None
) -> SuspendedJob | None:
    shrinkage = None if resumed_at is not None else _shrinkage(plural, document)
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
        resumed_at,
    )


def _gang(group: str, plural: str, document: Document) -> MadeGang | None:
    """Return the one gang that an object makes by itself, ``None``: none, several, or another's."""
    if (group, plural) not in KINDS:
        return None
    meta = document.get("metadata")
    namespace = meta.get("namespace", "") if isinstance(meta, Mapping) else ""
    named = {**document, "apiVersion": f"{group}/", "kind": plural.removesuffix("s")}
    made = gangs([named], namespace)
    if len(made) != 1 or made[0].spec is None or made[0].spec.dialect not in KINDS_BY_DIALECT:
        return None
    return made[0] if made[0].size <= MOST_PODS else None


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


def _shrinkage(plural: str, document: Json) -> Shrinkage | None:
    if plural == "jobs":
        return _of_job(document, (), "", document)
    if plural != "jobsets":
        return None
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
    asked = _count(whole["metadata"].get("annotations", {}).get(names.ASKED_PARALLELISM, ""))
    asked = max(asked, now)
    if not 0 < least < asked:
        return None
    follows = bool(own) or notes.get(KUEUE_EQUAL) == "true"
    is_both = follows and spec.get("completions") == now
    both = ("parallelism", "completions") if is_both else ("parallelism",)
    return Shrinkage(role, asked, least, now, tuple((*at, "spec", name) for name in both))


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


def value_at(document: object, path: Path) -> object:
    """Return the value at a path, ``None`` where there is none."""
    for step in path:
        if isinstance(document, Mapping):
            document = document.get(step)
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return None
    return document


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
