"""Kueue's Workload (kueue.x-k8s.io/v1beta2) as a claim of quota.

What it asks for is the sum over its pod sets of their count times what one pod requests, as
kube-scheduler counts it. Its queue is a LocalQueue of its namespace. One that is finished, that is
not active or that is being deleted asks for nothing; it holds what ``status.admission`` says as
long as ``QuotaReserved`` is true and it is not finished (pkg/workload/workload.go).

Not looked at: ``topologyRequest``, node affinity, LimitRanges, RuntimeClasses that
are not written into the pod templates yet.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from muster.cluster.claims import ClaimKey, ClaimPart, Grant, PartGrant, QuotaClaim
from muster.cluster.quota.aliases import QueueUser
from muster.kube import wire
from muster.kube.quantity import QuantityError
from muster.kube.resources import Resource
from muster.kube.translation import selectors
from muster.kube.translation.requests import pod_requests
from muster.workloads.queues.amounts import AmountError, amount
from muster.workloads.queues.kueue import DIALECT, GROUP
from muster.workloads.queues.reading import created_at, queue_name

KueueCondition = Mapping[str, Any]


class PodTemplate(wire.Wire, frozen=True):
    """core/v1 PodTemplateSpec, without its metadata."""

    spec: wire.PodSpec = wire.PodSpec()


class KueuePodSet(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 PodSet."""

    name: str = ""
    count: int = 0
    min_count: int | None = None
    template: PodTemplate = PodTemplate()


class KueueWorkloadSpec(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 WorkloadSpec."""

    pod_sets: tuple[KueuePodSet, ...] = ()
    queue_name: str = ""
    priority: int | None = None
    active: bool | None = None


class KueuePodSetAssignment(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 PodSetAssignment."""

    name: str = ""
    flavors: dict[str, str] = msgspec.field(default_factory=dict)
    resource_usage: dict[str, wire.Quantity] = msgspec.field(default_factory=dict)
    count: int | None = None


class KueueAdmission(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 Admission."""

    cluster_queue: str = ""
    pod_set_assignments: tuple[KueuePodSetAssignment, ...] = ()


class KueueRequeueState(wire.Wire, frozen=True, omit_defaults=True):
    """kueue.x-k8s.io/v1beta2 RequeueState."""

    count: int | None = None
    requeue_at: str | None = None


class KueueWorkloadStatus(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 WorkloadStatus."""

    conditions: tuple[dict[str, Any], ...] = ()
    admission: KueueAdmission | None = None
    admission_checks: tuple[dict[str, Any], ...] = ()
    requeue_state: KueueRequeueState | None = None


class KueueWorkload(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 Workload."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: KueueWorkloadSpec = KueueWorkloadSpec()
    status: KueueWorkloadStatus = KueueWorkloadStatus()


WORKLOADS: Final = Resource(GROUP, "v1beta2", "workloads", KueueWorkload)


def key_of(meta: wire.ObjectMeta) -> ClaimKey:
    """Return the key of an object's claim."""
    return ClaimKey(f"{meta.namespace}/{meta.name}")


def claim(found: KueueWorkload) -> QuotaClaim:
    """Return what a Workload asks for and holds. It is total: what is wrong stands in ``problem``.

    One that is wrong holds what its status says all the same.
    """
    meta, spec = found.metadata, found.spec
    parts, problem = _parts(spec)
    is_finished = is_true(found, "Finished")
    grant, granted_at = (None, 0.0) if is_finished else _granted(found)
    return QuotaClaim(
        key=key_of(meta),
        uid=meta.uid,
        user=QueueUser(DIALECT, meta.namespace, spec.queue_name),
        parts=parts,
        priority=spec.priority or 0,
        since=created_at(meta),
        not_before=requeue_at(found),
        version=int(meta.resource_version) if meta.resource_version.isdecimal() else 0,
        asks=spec.active is not False and not is_finished and meta.deletion_timestamp is None,
        problem=problem,
        grant=grant,
        granted_at=granted_at,
        is_leaving=grant is not None and is_true(found, "Evicted"),
        is_admitted=is_true(found, "Admitted"),
        checks={
            str(one.get("name")): str(one.get("state")) for one in found.status.admission_checks
        },
    )


def requeue_at(found: KueueWorkload) -> float:
    """Return when a Workload may be given quota again, in seconds since the epoch; 0: now."""
    state = found.status.requeue_state
    return 0.0 if state is None or not state.requeue_at else seconds(state.requeue_at)


def condition(found: KueueWorkload, type_: str) -> KueueCondition | None:
    """Return a condition of a Workload, ``None``: it has none of that type."""
    return next((one for one in found.status.conditions if one.get("type") == type_), None)


def is_true(found: KueueWorkload, type_: str) -> bool:
    """Return whether a condition is there and true."""
    one = condition(found, type_)
    return one is not None and one.get("status") == "True"


def _parts(spec: KueueWorkloadSpec) -> tuple[tuple[ClaimPart, ...], str]:
    """Return the parts of a claim, and what is wrong with it."""
    try:
        return tuple(map(_part, spec.pod_sets)), ""
    except (QuantityError, selectors.UnknownOperator) as error:
        return (), f"spec.podSets: {error}"


def _part(found: KueuePodSet) -> ClaimPart:
    pod = found.template.spec
    return ClaimPart(
        found.name,
        found.count,
        tuple(sorted(pod_requests(pod).items())),
        tuple(sorted(pod.node_selector.items())),
        selectors.tolerations(pod.tolerations),
        found.min_count,
    )


def _granted(found: KueueWorkload) -> tuple[Grant | None, float]:
    """Return what a Workload holds, and since when."""
    admission, reserved = found.status.admission, condition(found, "QuotaReserved")
    if admission is None or reserved is None or reserved.get("status") != "True":
        return None, 0.0
    queue = queue_name(DIALECT, admission.cluster_queue)
    parts = tuple(map(_part_grant, admission.pod_set_assignments))
    return Grant(queue, parts), seconds(reserved.get("lastTransitionTime"))


def _part_grant(found: KueuePodSetAssignment) -> PartGrant:
    return PartGrant(found.name, found.count or 0, found.flavors, _amounts(found.resource_usage))


def _amounts(usage: Mapping[str, wire.Quantity]) -> dict[str, int]:
    """Return what is used by resource; what is no quantity is taken for nothing."""
    found = {}
    for name, written in usage.items():
        try:
            found[name] = amount("status.admission", name, written)
        except AmountError:
            found[name] = 0
    return found


def seconds(moment: object) -> float:
    """Return a time as a status has it in seconds since the epoch; 0 for what is none."""
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except ValueError:
        return 0.0
