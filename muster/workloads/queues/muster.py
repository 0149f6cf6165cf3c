"""Muster's own queues (muster.dev/v1alpha1 Queue).

::

    cluster         muster/cluster: what the nodes have; there as soon as a queue has no parent
    ├── research
    │   ├── vision      weight 2
    │   └── speech      weight 1
    └── service

**Numbers** of a resource: ``kept`` ≤ ``entitled`` ≤ ``limit``. A queue can take back what it is
entitled to; all but ``kept`` is lent while it is idle. A resource that a queue does not name is
entitled to nothing and has no limit but those above. A parent's numbers contain its children's.

**shareFunction** orders the queues below one, unless one of them says otherwise; those directly
below the cluster go by ``Borrowed``. ``priority`` counts where the function says so.

**minRunSeconds**: its gangs run so long before they give way, to whomever.
"""

from typing import Final

import msgspec

from muster.cluster.quota.aliases import OWN
from muster.cluster.quota.cells import UNLIMITED, Cell, Quota
from muster.cluster.quota.preemptionpolicy import PreemptionPolicy
from muster.cluster.quota.queuespec import QueueSpec, ShareFunction
from muster.cluster.specs.podconstraints import Requirement
from muster.kube import wire
from muster.kube.translation import selectors
from muster.kube.translation.selectors import UnknownOperator
from muster.workloads.queues.findings import QueueFindings
from muster.workloads.queues.reading import (
    NO_NAMESPACE,
    QueueAlias,
    QueueReading,
    created_at,
    queue_name,
    whole_cluster,
)
from muster.workloads.queues.statusmeta import StatusMeta

GROUP: Final = "muster.dev"
VERSION: Final = "v1alpha1"
CLUSTER: Final = queue_name(OWN, "cluster")
GATE: Final = "Gate"  # pods of waiting gangs exist, gated
SUSPEND: Final = "Suspend"  # waiting jobs are suspended, and have no pods
_MOST_PRIORITY: Final = 2**31 - 1
_LONGEST_RUN: Final = 365 * 86_400  # seconds
_SHARES: Final = tuple(one.value for one in ShareFunction)
_OPERATORS: Final = "In, NotIn, Exists or DoesNotExist"


class QueueQuota(wire.Wire, frozen=True):
    """The numbers of one resource."""

    resource: str = ""
    entitled: wire.Quantity | None = None
    kept: wire.Quantity | None = None
    limit: wire.Quantity | None = None


class OwnQueueSpec(wire.Wire, frozen=True):
    """What an administrator writes; the API server fills in the defaults of the definition."""

    parent: str = ""
    weight: wire.Quantity = 1
    priority: int = 0
    strict: bool = False
    closed: bool = False
    admission: str = GATE
    share_function: str = ""
    min_run_seconds: int | None = None
    quotas: tuple[QueueQuota, ...] = ()
    namespace_selector: wire.LabelSelector | None = None


class OwnQueue(wire.Wire, frozen=True):
    """muster.dev/v1alpha1 Queue."""

    metadata: StatusMeta = StatusMeta()
    spec: OwnQueueSpec = OwnQueueSpec()
    #: as it stands, so that an equal one is not written again
    status: dict[str, object] = msgspec.field(default_factory=dict)


def queue(found: OwnQueue) -> QueueReading:
    """Return what a Queue says."""
    spec, findings = found.spec, QueueFindings()
    name = queue_name(OWN, found.metadata.name)
    if name == CLUSTER:
        findings.wrong("metadata.name", "cluster", "another name: it stands for the whole cluster")
        return QueueReading(problems=tuple(findings.problems))
    quotas = dict(_quotas(spec, findings))
    namespaces = _namespaces(spec.namespace_selector, findings)
    weight = findings.thousandths("spec.weight", spec.weight, 0)
    if not abs(spec.priority) <= _MOST_PRIORITY:
        findings.wrong("spec.priority", spec.priority, f"at most {_MOST_PRIORITY} up or down")
    if spec.priority and not spec.parent:
        why = f"queues directly below the cluster go by {ShareFunction.BORROWED}"
        findings.ignored("spec.priority", why)
    if spec.admission not in (GATE, SUSPEND):
        findings.wrong("spec.admission", spec.admission, f"{GATE} or {SUSPEND}")
    shares, least = _shares(spec, findings), _least_run(spec, findings)
    parent = queue_name(OWN, spec.parent) if spec.parent else CLUSTER
    read = QueueSpec(
        name, parent, quotas, weight, max(-_MOST_PRIORITY, min(spec.priority, _MOST_PRIORITY)),
        is_whole=True, is_strict=spec.strict, is_open=not spec.closed and not findings.problems,
        shares=shares, preemption=PreemptionPolicy(preempt_min_run=least, reclaim_min_run=least),
    )  # fmt: skip
    return QueueReading(
        specs=(read,),
        implied=(whole_cluster(CLUSTER),) if parent == CLUSTER else (),
        aliases=(QueueAlias(found.metadata.name, name),),
        namespaces={name: namespaces} if namespaces else {},
        problems=tuple(findings.problems),
        unobeyed=tuple(findings.unobeyed),
        since=created_at(found.metadata),
    )


def _shares(spec: OwnQueueSpec, findings: QueueFindings) -> ShareFunction | None:
    """Return what orders the queues below."""
    findings.one_of("spec.shareFunction", spec.share_function, _SHARES)
    return ShareFunction(spec.share_function) if spec.share_function in _SHARES else None


def _least_run(spec: OwnQueueSpec, findings: QueueFindings) -> float | None:
    """Return for how long its gangs run before they give way, ``None``: as the queue above says."""
    found = spec.min_run_seconds
    if found is not None and not 0 <= found <= _LONGEST_RUN:
        findings.wrong("spec.minRunSeconds", found, f"a whole number from 0 to {_LONGEST_RUN}")
        return None
    return found


def _quotas(spec: OwnQueueSpec, findings: QueueFindings) -> list[tuple[Cell, Quota]]:
    return [
        (Cell("", one.resource), _quota(f"spec.quotas[{one.resource}]", one, findings))
        for one in spec.quotas
    ]


def _quota(field: str, written: QueueQuota, findings: QueueFindings) -> Quota:
    """Return the numbers of one resource."""
    name = written.resource
    limit = findings.amount(f"{field}.limit", name, written.limit, UNLIMITED)
    entitled = findings.amount(f"{field}.entitled", name, written.entitled, 0)
    kept = findings.amount(f"{field}.kept", name, written.kept, 0)
    if entitled > limit:
        findings.wrong(f"{field}.entitled", written.entitled, f"at most the limit, {written.limit}")
    if kept > entitled:
        allowed = f"at most what the queue is entitled to, {written.entitled or 0}"
        findings.wrong(f"{field}.kept", written.kept, allowed)
    lendable = max(entitled - kept, 0) if kept else UNLIMITED
    return Quota(min(entitled, limit), lendable, limit=limit)


def _namespaces(
    source: wire.LabelSelector | None, findings: QueueFindings
) -> tuple[Requirement, ...]:
    """Return requirements over namespaces, none where all may use the queue."""
    if source is None:
        return ()
    try:
        found = selectors.label_selector(source)
    except UnknownOperator as error:
        findings.wrong("spec.namespaceSelector", error, _OPERATORS)
        return NO_NAMESPACE
    return NO_NAMESPACE if found is None else found.requirements
