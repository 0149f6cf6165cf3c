"""``POST /v1/whatif``: the gang in question, the supposed changes, and the answer."""

from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from muster.apiwire.decision import Decision
from muster.apiwire.room import RoomNote

PATH: Final = "/v1/whatif"

MOST_NODES: Final = 1_000  # new nodes in one question
MOST_MEMBERS: Final = 4_096  # new pods in one question
BODY_BYTES: Final = 1 << 20


class _Strict(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename="camel",
    kw_only=True,
):
    """The base of questions: a misspelt field is an error."""


class WhatIfPods(_Strict, frozen=True):
    """Pods that are equal."""

    #: a pod template, or a pod
    template: dict[str, Any]
    #: how many there are
    count: int = 1
    #: name of their role, "" for none
    role: str = ""


class Job(_Strict, frozen=True):
    """A job that does not exist yet: its pods, and the labels and annotations of its object."""

    name: str
    namespace: str = "default"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    pods: tuple[WhatIfPods, ...] = ()
    priority: int = 0
    #: Kubernetes objects as they would be created. Where there are any, the job is what they make,
    #: counted as the dialects' readers count it; ``labels``, ``annotations`` and ``pods`` are not
    #: read then.
    objects: tuple[dict[str, Any], ...] = ()


class Without(_Strict, frozen=True):
    """What is supposed not to be there."""

    #: keys of gangs, or NAMESPACE/NAME
    gangs: tuple[str, ...] = ()
    #: NAMESPACE/NAME
    pods: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


class WhatIfNodes(_Strict, frozen=True):
    """Empty nodes that are supposed to be there."""

    #: how many more
    count: int
    #: the node that they equal
    like: str
    #: labels that differ from its labels
    labels: dict[str, str] = {}


class Set(_Strict, frozen=True):
    """Changed wishes of the gang; None: unchanged."""

    #: a level: label key, or the last part of one; "" for none
    topology_required: str | None = None
    #: a level, as above
    topology_preferred: str | None = None
    #: members
    size: int | None = None
    #: members it needs
    min: int | None = None


class WhatIfQuestion(_Strict, frozen=True):
    """Exactly one of ``gang`` and ``job`` is given."""

    #: one that exists: its key, NAMESPACE/NAME, or a name of its own
    gang: str = ""
    #: one that does not exist
    job: Job | None = None
    #: what is supposed not to be there
    without: Without = Without()
    #: nodes that are added
    with_nodes: tuple[WhatIfNodes, ...] = ()
    #: changed wishes of the gang
    set: Set = Set()
    #: whether to say who would give way where it does not fit
    preempt: bool = False


class Where(msgspec.Struct, frozen=True):
    """A domain that the plan uses."""

    #: labels of its levels, widest first, with "/" between; "no label" where there are none
    domain: str
    #: members that go there
    members: int
    #: nodes they go to
    nodes: int


class WhatIfAnswer(msgspec.Struct, frozen=True):
    """The answer."""

    #: what was supposed, a line each
    supposed: tuple[str, ...]
    #: whether the gang fits then
    fits: bool
    decision: Decision
    #: the decision for people, most important first
    lines: tuple[str, ...]
    #: the domains above the hosts, most members first; empty where it does not fit
    where: tuple[Where, ...]
    #: who would give way, where that was asked and the gang does not fit
    room: RoomNote | UnsetType = UNSET


def parse(body: bytes) -> WhatIfQuestion:
    """Read a body; raises ``ValueError`` that names what is wrong."""
    try:
        question = msgspec.json.decode(body, type=WhatIfQuestion)
    except msgspec.MsgspecError as error:
        raise ValueError(f"body: {error}") from error
    problem = _problem(question)
    if problem:
        raise ValueError(problem)
    return question


def _problem(question: WhatIfQuestion) -> str:
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
    counted = not job.objects
    if counted and (not 1 <= count <= MOST_MEMBERS or any(kind.count < 0 for kind in job.pods)):
        return f"job {job.name}: {count} pods; allowed are 1 to {MOST_MEMBERS}"
    if not job.name or "/" in job.name or not job.namespace or "/" in job.namespace:
        return f"job {job.namespace}/{job.name}: needs a name and a namespace without a slash"
    return ""
