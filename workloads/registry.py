"""Which dialect speaks for a pod when several could.

Precedence, first match wins:

1. ``muster``: the user wrote Muster's own label; nothing is more explicit.
2. ``coscheduling``: an explicit group label of another scheduler.
3. The controller that made the pod, as its labels say: ``jobset``, Kubeflow's
   ``pytorchjob`` …, ``raycluster``, ``leaderworkerset``.
4. ``job``: the Indexed Job that made the pod.
5. ``spark``: the executors of an application.

A managed pod that none of them claims is a gang of one (``SINGLE``). An owner overridden
by an explicit label is how one gang is made of several Jobs, so it is no conflict; two
explicit groups on one pod are, and ``conflicts`` says so.
"""

from collections.abc import Iterator
from typing import Final

from cluster.gangs import GangSpec
from kube import names, wire
from workloads.batchjob import BatchJob
from workloads.coscheduling import Coscheduling
from workloads.dialect import Dialect, Member
from workloads.jobset import JobSets
from workloads.kubeflow import KUBEFLOW
from workloads.labels import Context, FieldError, contradictions, read
from workloads.leaderworkerset import LeaderWorkerSets
from workloads.muster import MusterLabels
from workloads.ray import RayClusters
from workloads.single import SinglePod
from workloads.spark import Spark
from workloads.userkeys import shorten

DIALECTS: Final[tuple[Dialect, ...]] = (
    MusterLabels(),
    Coscheduling(),
    JobSets(),
    *KUBEFLOW,
    RayClusters(),
    LeaderWorkerSets(),
    BatchJob(),
    Spark(),
)
SINGLE: Final = SinglePod()
_MARKERS: Final = tuple(dict.fromkeys(key for dialect in DIALECTS for key in dialect.markers))
_OF_THE_GROUP: Final = (
    names.GANG_MIN, names.TOPOLOGY_REQUIRED, names.TOPOLOGY_PREFERRED, names.SLICE_SIZE,
    names.SLICE_TOPOLOGY, names.QUEUE,
)  # fmt: skip


def dialect_of(pod: wire.Pod) -> Dialect | None:
    """Return the dialect that speaks for the pod, ``None`` for a pod on its own."""
    return next((dialect for dialect in DIALECTS if dialect.member(pod) is not None), None)


def member(pod: wire.Pod) -> Member | None:
    """Return the pod's place in its gang, ``None`` for a pod on its own."""
    for dialect in DIALECTS:
        found = dialect.member(pod)
        if found is not None:
            return found
    return None


def member_or_single(pod: wire.Pod) -> Member:
    """Return the pod's place in its gang, or in a gang of its own."""
    return member(pod) or SINGLE.member(pod)


def spec_from_pod(pod: wire.Pod) -> GangSpec | None:
    """Return what the pod itself says about its gang, ``None`` when an object says it."""
    return (dialect_of(pod) or SINGLE).spec_from_pod(pod)


def names_a_group(pod: wire.Pod) -> bool:
    """Return whether the pod itself names a group, which alone makes it managed."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    if not any(key in labels or key in annotations for key in _MARKERS):
        return False  # nearly every pod of a cluster ends here
    return any(d.markers and d.member(pod) is not None for d in DIALECTS)


def conflicts(pod: wire.Pod) -> list[str]:
    """Return a sentence for each explicit group that loses to one of higher precedence."""
    groups = [d.member(pod) for d in DIALECTS if d.markers]
    named = [group.key for group in groups if group is not None]
    return [f"pod belongs to gang {named[0]}; {other} is ignored" for other in named[1:]]


def markers() -> tuple[str, ...]:
    """Return every label or annotation key that alone makes a pod managed."""
    return _MARKERS


def errors(
    pod: wire.Pod,
    *,
    levels: tuple[str, ...] = names.DEFAULT_LEVELS,
    path: str = "metadata",
    made_by: str = "",
) -> list[FieldError]:
    """Return what is wrong with the muster.dev keys of a pod or of a pod template.

    ``made_by``: the dialect of the object that will make a template's pods, which the
    template itself does not show.
    """
    reading = read(pod.metadata.labels, pod.metadata.annotations, path=path)
    if not reading.found:
        return []
    speaker = dialect_of(pod)
    group = speaker.name if speaker is not None else made_by
    return [*reading.errors, *contradictions(reading, Context(levels, group))]


def unread(pod: wire.Pod) -> Iterator[str]:
    """Yield keys that have no effect on this pod because a PodGroup speaks for its gang."""
    speaker = dialect_of(pod)
    if speaker is None or speaker.name != Coscheduling.name:
        return
    found = read(pod.metadata.labels, pod.metadata.annotations).found
    for key in _OF_THE_GROUP:
        if key in found:
            yield f'{key} "{shorten(found[key][1])}" is not read here: put it on the PodGroup'
