"""What admission changes on a pod: pure, from pod to JSON Patch.

A pod that Muster manages gets the scheduling gate ``muster.dev/plan``, so that
kube-scheduler does not see it before its gang is planned, and, where it names a scheduler
that Muster replaces, the profile that has the extender; the old name is kept in an
annotation. Everything else about the pod stays as it is, and every other pod altogether.

Running twice changes nothing the second time: a pod with the gate gets no other, and the
rewritten name is no longer on the list. A pod that already names its node has bypassed
scheduling; a gate would make it invalid (core/v1: gates need an empty nodeName).

A gated pod that a controller made also loses its ``managedFields``: docs/adr/0007 says why
and what it costs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

from muster.injection.overrides.application import Overridden
from muster.injection.patching.operations import Operation, append_gate, pointer, set_annotations
from muster.injection.run import Injection
from muster.kube import names, wire
from muster.workloads.managedpods import DEFAULT_PROFILE, ManagedPolicy, has_gate

_NO_LABELS: Mapping[str, str] = MappingProxyType({})
_UNTRACKED = Operation(pointer("metadata", "managedFields"), [])


@dataclass(frozen=True, slots=True)
class Mutation:
    """The patch, and what it does, for metrics, logs and Events."""

    operations: tuple[Operation, ...] = ()
    #: not in ``operations`` yet: injection writes some, too, and where the pod has none at all the
    #: map must be made once
    annotations: Mapping[str, str] = field(default_factory=dict)
    gated: bool = False
    #: made with its place in it, where it would have been gated
    placed: bool = False
    #: the scheduler name that was replaced
    rewritten: str = ""
    #: what came of override policies, where there were any
    overridden: Overridden | None = None
    #: what injection decided, where it was asked
    injected: Injection | None = None
    #: what was decided about the templates of an object that makes pods
    templates: str = ""
    #: why these were not completed, "" where they were, or need not be
    uncompleted: str = ""

    def patch(self, pod: wire.Pod) -> tuple[Operation, ...]:
        """Return all of it, for a pod that nothing is injected into."""
        return *self.operations, *set_annotations(pod.metadata.annotations, self.annotations)


NOTHING = Mutation()


def mutate(
    pod: wire.Pod,
    policy: ManagedPolicy,
    namespace_labels: Mapping[str, str] = _NO_LABELS,
    *,
    explicit: bool | None = None,
) -> Mutation:
    """Return what to change on a new pod; ``explicit``: see ``ManagedPolicy.asks``.

    The API server does not send namespace labels; the namespaceSelector of the webhook
    configuration has already kept opted-out namespaces away.
    """
    if pod.spec.node_name or not policy.asks(pod, namespace_labels, explicit=explicit):
        return NOTHING
    scheduler = pod.spec.scheduler_name or DEFAULT_PROFILE
    old = scheduler if policy.replaces(scheduler) else ""
    if not old and not policy.has_extender(scheduler):
        return NOTHING
    gate = not has_gate(pod)
    operations = [Operation(pointer("spec", "schedulerName"), policy.profile)] if old else []
    annotations = {names.ORIGINAL_SCHEDULER: old} if old else {}
    if gate:
        operations.append(append_gate(len(pod.spec.scheduling_gates), names.PLAN_GATE))
        if any(owner.controller for owner in pod.metadata.owner_references):
            operations.append(_UNTRACKED)
    return Mutation(tuple(operations), annotations, gated=gate, rewritten=old)


def in_namespace(pod: wire.Pod, namespace: str) -> wire.Pod:
    """Return the pod with the request's namespace, which its own metadata may not have yet."""
    if pod.metadata.namespace:
        return pod
    meta = msgspec.structs.replace(pod.metadata, namespace=namespace)
    return msgspec.structs.replace(pod, metadata=meta)
