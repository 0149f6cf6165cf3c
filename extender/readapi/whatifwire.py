"""The body of ``POST /v1/whatif``: what is asked about, and what is to be supposed."""

from typing import Any, Final

import msgspec

MOST_NODES: Final = 1_000  # new nodes in one question
MOST_MEMBERS: Final = 4_096  # new pods in one question
BODY_BYTES: Final = 1 << 20


class _Strict(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True
):
    """A misspelt field is an error and not a question about something else."""


class Kind(_Strict, frozen=True):
    """``count`` equal pods: ``template`` is a pod template, or a pod. ``role``: "" for none."""

    template: dict[str, Any]
    count: int = 1
    role: str = ""


class Job(_Strict, frozen=True):
    """A job that does not exist yet: its pods, and the keys its object carries itself."""

    name: str
    namespace: str = "default"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    pods: tuple[Kind, ...] = ()
    priority: int = 0


class Without(_Strict, frozen=True):
    """What is not there. Gangs by key or namespace/name, pods as namespace/name."""

    gangs: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


class Nodes(_Strict, frozen=True):
    """``count`` empty nodes more like the node ``like``; ``labels`` that differ from its."""

    count: int
    like: str
    labels: dict[str, str] = {}


class Set(_Strict, frozen=True):
    """Wishes of the gang that differ. A level is a label key or the last part of one; "": none."""

    topology_required: str | None = None
    topology_preferred: str | None = None
    size: int | None = None
    min: int | None = None


class Question(_Strict, frozen=True):
    """Either ``gang``, one that exists, or ``job``, one that does not."""

    gang: str = ""
    job: Job | None = None
    without: Without = Without()
    with_nodes: tuple[Nodes, ...] = ()
    set: Set = Set()


def parse(body: bytes) -> Question:
    """Read a body; raises ``ValueError`` that names what is wrong."""
    try:
        question = msgspec.json.decode(body, type=Question)
    except msgspec.MsgspecError as error:
        raise ValueError(f"body: {error}") from error
    problem = _problem(question)
    if problem:
        raise ValueError(problem)
    return question


def _problem(question: Question) -> str:
    if bool(question.gang) == (question.job is not None):
        return "gang, job: name exactly one of them"
    nodes = sum(each.count for each in question.with_nodes)
    if nodes > MOST_NODES or any(each.count < 1 for each in question.with_nodes):
        return f"withNodes: {nodes} nodes; allowed are 1 to {MOST_NODES} in all"
    for name, value in (("size", question.set.size), ("min", question.set.min)):
        if value is not None and not 1 <= value <= MOST_MEMBERS:
            return f"set.{name}: {value}; allowed are 1 to {MOST_MEMBERS}"
    if question.job is not None:
        return _job_problem(question.job)
    return ""


def _job_problem(job: Job) -> str:
    count = sum(kind.count for kind in job.pods)
    if not 1 <= count <= MOST_MEMBERS or any(kind.count < 0 for kind in job.pods):
        return f"job {job.name}: {count} pods; allowed are 1 to {MOST_MEMBERS}"
    if not job.name or "/" in job.name or not job.namespace or "/" in job.namespace:
        return f"job {job.namespace}/{job.name}: needs a name and a namespace without a slash"
    return ""
