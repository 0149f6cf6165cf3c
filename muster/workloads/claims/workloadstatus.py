"""The status of a Workload that is given quota, waits, or is evicted, in Kueue's words.

Statuses are applied on the server's side under the name of Kueue's scheduler, ``MANAGER``: whoever
ends an eviction applies ``QuotaReserved: False`` without ``admission`` under that name, and the
server removes what the name owned (pkg/workload/patching). So what is applied always holds all
conditions of that name.
"""

from typing import Any, Final

import msgspec

from muster.cluster.claims import Grant, PartGrant
from muster.kube.wire import Quantity
from muster.workloads.claims.kueueworkload import (
    WORKLOADS,
    KueueAdmission,
    KueueCondition,
    KueuePodSetAssignment,
    KueueRequeueState,
    KueueWorkload,
    condition,
    requeue_at,
    seconds,
)
from muster.workloads.queues.amounts import written
from muster.workloads.queues.kueue import DIALECT
from muster.workloads.queues.sight import moment

MANAGER: Final = "kueue-admission"  # ``constants.AdmissionName``
_MANAGED: Final = (
    "QuotaReserved",
    "Admitted",
    "Evicted",
    "Preempted",
    "Requeued",
    "DeactivationTarget",
    "BlockedOnPreemptionGates",
)  # ``admissionManagedConditions`` of pkg/workload/patching
# states of an admission check
PENDING, READY, RETRY, REJECTED = "Pending", "Ready", "Retry", "Rejected"
_MOST_CHARS: Final = 32 * 1024  # of a message (meta/v1 Condition)
_WHY: Final = {
    "InClusterQueue": "prioritization in the ClusterQueue",
    "InCohortReclamation": "reclamation within the cohort",
    "InCohortFairSharing": "Fair Sharing within the cohort",
    "InCohortReclaimWhileBorrowing": "reclamation within the cohort while borrowing",
}


def granted(
    found: KueueWorkload, grant: Grant, now: float, checks: tuple[str, ...] = ()
) -> KueueWorkload:
    """Return a Workload that has its quota; it is admitted, unless ``checks`` are not ready."""
    queue = grant.queue.removeprefix(f"{DIALECT}/")
    assignments = tuple(map(_assignment, grant.parts))
    admission = KueueAdmission(cluster_queue=queue, pod_set_assignments=assignments)
    conditions = _Conditions(found, now)
    text = f"Quota reserved in ClusterQueue {queue}"
    conditions.set("QuotaReserved", "True", "QuotaReserved", text)
    for type_ in ("Evicted", "Preempted"):
        before = condition(found, type_)
        if before is not None and before.get("status") == "True":
            text = f"Previously: {before.get('message')}"
            conditions.set(type_, "False", "QuotaReserved", text)
    _end_backoff(found, conditions)
    listed = _listed(found, checks, now)
    if all(one.get("state") == READY for one in listed):
        conditions.set("Admitted", "True", "Admitted", "The workload is admitted")
    after = _with(found, conditions, admission, listed)
    state = found.status.requeue_state
    return _requeued(after, None if state is None else KueueRequeueState(count=state.count))


def _end_backoff(found: KueueWorkload, conditions: "_Conditions") -> None:
    """Take back that a Workload is not to be queued again: whoever ended its eviction said so."""
    before = condition(found, "Requeued")
    if before is None or before.get("status") != "False":
        return
    if before.get("reason") == "Deactivated":
        conditions.set("Requeued", "True", "Reactivated", "The workload was reactivated")
    else:
        conditions.set("Requeued", "True", "BackoffFinished", "The workload backoff was finished")


def admitted(found: KueueWorkload, now: float) -> KueueWorkload:
    """Return a Workload all of whose checks are ready."""
    conditions = _Conditions(found, now)
    conditions.set("Admitted", "True", "Admitted", "The workload is admitted")
    return _with(found, conditions, found.status.admission)


def listing(found: KueueWorkload, checks: tuple[str, ...], now: float) -> KueueWorkload:
    """Return a Workload with just these checks; those that are new have said nothing yet."""
    conditions, listed = _Conditions(found, now), _listed(found, checks, now)
    return _with(found, conditions, found.status.admission, listed)


def unchecked(found: KueueWorkload, now: float, *, is_final: bool) -> KueueWorkload:
    """Return a Workload that is evicted because a check asks for that.

    Its checks begin anew. ``is_final``: one was rejected, so that it is deactivated, too.
    """
    conditions = _Conditions(found, now)
    said = found.status.admission_checks
    if is_final:
        names = ",".join(str(one.get("name")) for one in said if one.get("state") == REJECTED)
        text = f"The workload is deactivated due to Admission check(s): {names}, were rejected"
        conditions.set("Evicted", "True", "DeactivatedDueToAdmissionCheck", text)
    else:
        text = "At least one admission check is false"
        conditions.set("Evicted", "True", "AdmissionCheck", text)
    anew = tuple(_pending(one, conditions.now) for one in said)
    after = _with(found, conditions, found.status.admission, anew)
    return _requeued(after, None if is_final else _backoff(found, now))


def _backoff(found: KueueWorkload, now: float) -> KueueRequeueState | None:
    """Return when a Workload may be given quota again, as the checks have it that say Retry.

    The latest time counts, and one that has come changes nothing (pkg/workload/admissionchecks.go,
    ``GetMaxRetryTime``, ``NeedsRequeueAtUpdate`` at 0.19.2).
    """
    before = found.status.requeue_state
    at = max(map(_retry_at, found.status.admission_checks), default=0.0)
    if at <= max(now, requeue_at(found)):
        return before
    count = None if before is None else before.count
    return KueueRequeueState(count, moment(at))


def _retry_at(said: KueueCondition) -> float:
    """Return when a check is to be asked again, in seconds since the epoch; 0: at any time."""
    after, since = said.get("requeueAfterSeconds"), seconds(said.get("lastTransitionTime"))
    if said.get("state") != RETRY or not isinstance(after, int) or not since:
        return 0.0
    return since + after


def _pending(said: KueueCondition, now: str) -> dict[str, Any]:
    """Return a check that begins anew, and says what it was."""
    if said.get("state") == PENDING:
        return dict(said)
    text = f"Reset to Pending after eviction. Previously: {said.get('state')}"
    new = {"name": said["name"], "state": PENDING, "lastTransitionTime": now, "message": text}
    if isinstance(said.get("requeueAfterSeconds"), int):
        new["requeueAfterSeconds"] = said["requeueAfterSeconds"]
    if said.get("state") == RETRY:
        new["retryCount"] = int(said.get("retryCount") or 0) + 1
    return new


def _listed(
    found: KueueWorkload, checks: tuple[str, ...], now: float
) -> tuple[dict[str, Any], ...]:
    """Return the entries of checks: as they are, and Pending where there is none."""
    said = {str(one.get("name")): one for one in found.status.admission_checks}
    new = {"state": PENDING, "lastTransitionTime": moment(now), "message": ""}
    return tuple(said.get(name, {"name": name, **new}) for name in checks)


def evicted(found: KueueWorkload, reason: str, preemptor_uid: str, now: float) -> KueueWorkload:
    """Return a Workload that keeps its quota until its pods are gone.

    ``preemptor_uid``: of the Workload that it makes room for; "": it is stopped, and ``reason`` is
    that of the condition ``Evicted``.
    """
    conditions = _Conditions(found, now)
    if not preemptor_uid:
        conditions.set("Evicted", "True", reason, f"The workload is stopped: {reason}")
    else:
        why = _WHY.get(reason, reason)
        text = f"Preempted to accommodate a workload (UID: {preemptor_uid}) due to {why}"
        conditions.set("Evicted", "True", "Preempted", text)
        conditions.set("Preempted", "True", reason, text)
    return _with(found, conditions, found.status.admission)


def waiting(found: KueueWorkload, reason: str, message: str, now: float) -> KueueWorkload:
    """Return a Workload that says why it has no quota."""
    conditions = _Conditions(found, now)
    conditions.set("QuotaReserved", "False", reason, message)
    return _with(found, conditions, None)


def says(found: KueueWorkload, reason: str) -> bool:
    """Return whether a Workload says already that it has no quota for this reason."""
    one = condition(found, "QuotaReserved")
    return one is not None and one.get("status") == "False" and one.get("reason") == reason


def applied(found: KueueWorkload) -> dict[str, Any]:
    """Return what is applied so that the server's object has this status.

    It is refused if the object has changed since it was read.
    """
    meta = found.metadata
    return {
        "apiVersion": WORKLOADS.api_version,
        "kind": "Workload",
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
        },
        "status": {
            "conditions": [one for one in found.status.conditions if one["type"] in _MANAGED],
            **_admission(found.status.admission),
            **_checks(found.status.admission_checks),
            **_requeue_state(found.status.requeue_state),
        },
    }


def _admission(admission: KueueAdmission | None) -> dict[str, Any]:
    return {} if admission is None else {"admission": msgspec.to_builtins(admission)}


def _checks(listed: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    return {"admissionChecks": list(listed)} if listed else {}


def _requeue_state(state: KueueRequeueState | None) -> dict[str, Any]:
    found = {} if state is None else msgspec.to_builtins(state)
    return {"requeueState": found} if found else {}


def _requeued(found: KueueWorkload, state: KueueRequeueState | None) -> KueueWorkload:
    """Return a Workload with another state of its requeueing."""
    status = msgspec.structs.replace(found.status, requeue_state=state)
    return msgspec.structs.replace(found, status=status)


def _assignment(part: PartGrant) -> KueuePodSetAssignment:
    usage: dict[str, Quantity] = {
        name: written(name, amount) for name, amount in sorted(part.amounts.items())
    }
    return KueuePodSetAssignment(
        name=part.name, flavors=dict(part.flavors), resource_usage=usage, count=part.count
    )


def _with(
    found: KueueWorkload,
    conditions: "_Conditions",
    admission: KueueAdmission | None,
    checks: tuple[dict[str, Any], ...] | None = None,
) -> KueueWorkload:
    """Return a Workload with another status; ``checks``: ``None`` leaves them as they are."""
    listed = found.status.admission_checks if checks is None else checks
    status = msgspec.structs.replace(
        found.status,
        conditions=tuple(conditions.entries),
        admission=admission,
        admission_checks=listed,
    )
    return msgspec.structs.replace(found, status=status)


class _Conditions:
    """The conditions of a Workload, one of each type."""

    def __init__(self, found: KueueWorkload, now: float) -> None:
        self.entries = list(found.status.conditions)
        self._generation = found.metadata.generation
        self.now = moment(now)

    def set(self, type_: str, status: str, reason: str, message: str) -> None:
        """Put a condition in its place; its time is that of the last change of its status."""
        places = [i for i, one in enumerate(self.entries) if one.get("type") == type_]
        old = self.entries[places[0]] if places else {}
        is_same = old.get("status") == status
        new = {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message[:_MOST_CHARS],
            "observedGeneration": self._generation,
            "lastTransitionTime": old["lastTransitionTime"] if is_same else self.now,
        }
        if places:
            self.entries[places[0]] = new
        else:
            self.entries.append(new)
