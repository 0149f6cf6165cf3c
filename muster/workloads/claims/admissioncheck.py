"""Kueue's AdmissionChecks, and what is wrong with those that a ClusterQueue names.

::

    ClusterQueue names "budgt"   no such object            AdmissionCheckNotFound
    ClusterQueue names "budget"  its controller is away    AdmissionCheckInactive
                                                           ► nobody is admitted, nothing is charged

A Workload that was given quota would wait for ever for a check that nobody answers, and hold it.
Source: kubernetes-sigs/kueue, pkg/cache/scheduler/clusterqueue.go (``updateQueueStatus``,
``inactiveReason``) and cache.go (``AddOrUpdateAdmissionCheck``) at 0.19.2.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from muster.kube import wire
from muster.kube.resources import Resource
from muster.workloads.queues.kueue import GROUP
from muster.workloads.queues.sight import Verdict

_ACTIVE: Final = "Active"


class AdmissionCheckSpec(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 AdmissionCheckSpec."""

    controller_name: str = ""


class AdmissionCheckStatus(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 AdmissionCheckStatus."""

    conditions: tuple[wire.Condition, ...] = ()


class AdmissionCheck(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 AdmissionCheck; v1beta1 has the same fields."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: AdmissionCheckSpec = AdmissionCheckSpec()
    status: AdmissionCheckStatus = AdmissionCheckStatus()


ADMISSION_CHECKS: Final = tuple(
    Resource(GROUP, version, "admissionchecks", AdmissionCheck, namespaced=False)
    for version in ("v1beta2", "v1beta1")
)
"""The versions of the kind, best first."""


def missing_checks(
    queue: str, names: Iterable[str], known: Mapping[str, AdmissionCheck]
) -> Verdict | None:
    """Return why a ClusterQueue that names checks admits nobody, ``None``: they are all active."""
    wanted = sorted(names)
    field = f"spec.admissionChecksStrategy.admissionChecks of ClusterQueue {queue}"
    missing = [name for name in wanted if name not in known]
    inactive = [name for name in wanted if name in known and not _is_active(known[name])]
    texts = []
    if missing:
        texts.append(
            f"references missing AdmissionCheck(s): {','.join(missing)}: create"
            f" them, or name others in {field}"
        )
    if inactive:
        why = "; ".join(_why(known[name]) for name in inactive)
        texts.append(
            f"references inactive AdmissionCheck(s): {','.join(inactive)} ({why}): have their"
            f" controllers set condition {_ACTIVE} to True, or name others in {field}"
        )
    if not texts:
        return None
    reason = "AdmissionCheckNotFound" if missing else "AdmissionCheckInactive"
    return Verdict(is_ready=False, reason=reason, message=", ".join(texts))


def _condition(check: AdmissionCheck) -> wire.Condition | None:
    return next((one for one in check.status.conditions if one.type == _ACTIVE), None)


def _is_active(check: AdmissionCheck) -> bool:
    found = _condition(check)
    return found is not None and found.status == "True"


def _why(check: AdmissionCheck) -> str:
    """Return what a check's controller says, or that it says nothing."""
    found, name = _condition(check), check.metadata.name
    if found is None:
        return f"{name}: {check.spec.controller_name} has not spoken"
    return f"{name}: {found.message or found.reason or found.status}"
