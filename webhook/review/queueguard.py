"""What admission says of the queue that a new pod or job names. Pure.

::

    pod, or the gangs that an object makes ──► who names which queue ──► QueueDirectory ──► sentence
                                              least that the minimum takes

Only what no waiting would change is said: there is no such queue, the namespace may not use it, it
is closed, or it can never hold so much. What is used now is the planner's to know.

**Never too much.** Nothing is said before all queues were listed once, of what Muster does not
plan, of system namespaces and system pods, and of whoever names no queue. A gang that its pods
describe is known by one of them: its accelerators are counted for all of its minimum if it names no
role, the rest of it once. PodGroups and TrainJobs show no pods: of them only that is said which
holds whatever their pods ask for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

import msgspec

from muster.cluster.handlers.quotaevents import SYSTEM_PRIORITY
from muster.cluster.quota.aliases import QueueUser
from muster.injection.templates.completion import is_watched
from muster.kube import wire
from muster.kube.translation.limitranges import with_default_requests
from muster.kube.translation.requests import PODS, pod_requests
from muster.kube.translation.serverdefaults import with_defaults
from muster.queueing.admission.directory import QueueDirectory
from muster.workloads.descriptions import read_object
from muster.workloads.dialects.jobset import JobSets
from muster.workloads.jobowners import train_queue
from muster.workloads.keys.labels import read
from muster.workloads.madegangs import MadeGang, gangs
from muster.workloads.managedpods import ManagedPolicy
from muster.workloads.registry import SINGLE, PodMembership, is_explicit, names_its_group
from muster.workloads.suspendablekinds import TRAIN_JOBS
from webhook.review.groupobjects import GROUPS
from webhook.review.wire import UNREADABLE, AdmissionRequest

_SYSTEM_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})
_BROKEN: Final = (*UNREADABLE, ValueError)  # QuantityError is one


class QueuePolicy(StrEnum):
    """What becomes of pods and jobs that their queue does not admit as things are."""

    #: nothing; queues are not watched
    IGNORE = "ignore"
    #: a warning for their author
    WARN = "warn"
    #: 403
    REFUSE = "refuse"


class KnownQueues(Protocol):
    """What is known of the cluster at this moment."""

    def directory(self) -> QueueDirectory | None:
        """Return the queues, ``None`` before all of them were listed once."""

    def labels(self, namespace: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace, ``None`` where they are not known."""

    def default_requests(self, namespace: str) -> Mapping[str, wire.Quantity]:
        """Return what containers request there that say nothing of a resource (LimitRange)."""


@dataclass(frozen=True, slots=True)
class QueueGuard:
    """Says what is wrong with the queues that pods and objects name."""

    policy: QueuePolicy
    known: KnownQueues
    managed: ManagedPolicy

    def of_pod(self, pod: wire.Pod, placed: PodMembership | None) -> str:
        """Return why its queue does not admit a pod's gang, "" where it may."""
        user = _user(pod, placed)
        directory = self.known.directory() if user.text else None
        explicit = placed is not None and placed.explicit
        if directory is None or not self._counts(pod, explicit=explicit):
            return ""
        try:
            asked = self._asked(pod, placed)
        except ValueError:
            return ""
        return directory.problem(user, self.known.labels(user.namespace), asked)

    def of_object(self, request: AdmissionRequest) -> tuple[str, ...]:
        """Return why queues do not admit the gangs that an object makes."""
        directory = self.known.directory()
        if directory is None or not self.managed.covers(request.namespace, {}):
            return ()
        if request.resource.resource == "daemonsets":
            return ()  # the nodes of their pods are not Muster's choice
        labels = self.known.labels(request.namespace)
        try:
            document = msgspec.json.decode(request.object)
            if not isinstance(document, dict) or not is_watched(document):
                return ()
            made = gangs([document], request.namespace)
            users = [each for gang in made for each in self._users(gang, request.namespace)]
            users += _podless(request, document)
        except _BROKEN:
            return ()  # its templates' check says what is wrong
        found = (directory.problem(user, labels, asked) for user, asked in users)
        return tuple(dict.fromkeys(text for text in found if text))

    def _counts(self, pod: wire.Pod, *, explicit: bool | None) -> bool:
        """Return whether Muster plans the pod and a queue is charged for it."""
        spec = pod.spec
        is_system = (spec.priority or 0) >= SYSTEM_PRIORITY
        if is_system or spec.priority_class_name in _SYSTEM_CLASSES:
            return False
        return self.managed.plans(pod, explicit=explicit)

    def _asked(self, pod: wire.Pod, placed: PodMembership | None) -> Mapping[str, int]:
        """Return the least that a pod's gang takes, as far as the pod shows it."""
        own = pod_requests(pod.spec)
        spec = None if placed is None else placed.spec
        if placed is None or spec is None:
            return own
        alike = (PODS,) if placed.member.role else (PODS, *self._accelerators(own))
        members = max(spec.min_count, 1)
        return {name: amount * members if name in alike else amount for name, amount in own.items()}

    def _accelerators(self, amounts: Mapping[str, int]) -> Iterator[str]:
        return (name for name in amounts if name in self.managed.accelerators)

    def _users(
        self, gang: MadeGang, namespace: str
    ) -> Iterator[tuple[QueueUser, Mapping[str, int]]]:
        """Yield who names a queue, and the least that it takes at once."""
        pods = [self._pod(each.template, namespace) for each in gang.pods]
        spec = gang.spec
        explicit = True if spec is not None and is_explicit(spec.dialect) else None
        counted = [each for each in pods if self._counts(each, explicit=explicit)]
        if spec is None:
            yield from ((_user(each, None), pod_requests(each.spec)) for each in counted)
        elif counted:
            amounts = [pod_requests(each.spec) for each in pods]
            yield QueueUser(spec.dialect, namespace, spec.queue), gang.least(amounts)

    def _pod(self, template: Mapping[str, Any], namespace: str) -> wire.Pod:
        """Return a template's pod as the API server will store it."""
        meta = {**template["metadata"], "namespace": namespace, "name": "supposed"}
        spec = with_default_requests(
            with_defaults(template["spec"]), self.known.default_requests(namespace)
        )
        return msgspec.convert({"metadata": meta, "spec": spec}, wire.Pod, strict=False)


def _podless(
    request: AdmissionRequest, document: Mapping[str, Any]
) -> Iterator[tuple[QueueUser, Mapping[str, int]]]:
    """Yield the queue that an object names whose pods it does not show, and the least it takes."""
    at = request.resource.group, request.resource.resource
    if at == TRAIN_JOBS:
        yield QueueUser(JobSets.name, request.namespace, train_queue(document)), {}
    if at[1] not in GROUPS:
        return
    named = {**document, "metadata": {**document["metadata"], "namespace": request.namespace}}
    found = read_object(f"{at[0]}/", request.kind.kind, named)
    for spec in () if found is None else found.specs():
        yield QueueUser(spec.dialect, request.namespace, spec.queue), {PODS: spec.min_count}


def _user(pod: wire.Pod, placed: PodMembership | None) -> QueueUser:
    """Return which queue a pod names, "" where an object names that of its gang."""
    namespace = pod.metadata.namespace
    spec = SINGLE.spec_from_pod(pod) if placed is None else placed.spec
    if spec is not None:
        return QueueUser(spec.dialect, namespace, spec.queue)
    if placed is None or names_its_group(placed):
        return QueueUser("", namespace, "")
    reading = read(pod.metadata.labels, pod.metadata.annotations)
    text = reading.keys.queue or reading.wishes.queue
    return QueueUser(placed.dialect.name, namespace, text)
