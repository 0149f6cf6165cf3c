"""Kueue's queues (kueue.x-k8s.io/v1beta2; v1beta1 where a field has another name).

::

    Cohort "all"            kueue/cohort/all      quotas on top of what its children lend
    ├── ClusterQueue "a"    kueue/a               what gangs are charged to
    └── ClusterQueue "b"    kueue/b
    LocalQueue "team/main"  ─► alias "main" in the namespace "team" for kueue/a

**Cohorts.** A cohort that is named and has no object exists all the same, without quotas
(apis/kueue/v1beta2/cohort_types.go, ``parentName``): it is implied. A queue without a cohort
borrows nothing and lends nothing.

**Numbers.** nominalQuota is what a queue is entitled to, lendingLimit what it lends of it and
borrowingLimit what it may take on top (pkg/cache/scheduler/resource_node.go). A cell that a
ClusterQueue does not list can not be borrowed, either: its groups say which ones there are.

**Namespaces.** Without a ``namespaceSelector`` no namespace may use a ClusterQueue, with an empty
one all may (clusterqueue_types.go).

**Closed.** A ClusterQueue that is stopped, that is being deleted, or that names a flavor which does
not exist admits nobody (``ClusterQueueActiveReason…``); the last is found in the catalogue.

**Default.** Jobs that name no queue belong to the LocalQueue ``default`` of their namespace, where
there is one (KEP-2936, on since 0.12).
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from muster.cluster.quota.cells import UNLIMITED, Cell, Quota
from muster.cluster.quota.queuespec import WEIGHT_ONE, QueueName, QueueSpec
from muster.cluster.specs.podconstraints import Operator, Requirement
from muster.kube import wire
from muster.kube.translation import selectors
from muster.kube.translation.selectors import UnknownOperator
from muster.workloads.queues.findings import QueueFindings
from muster.workloads.queues.preemption.kueuepolicy import ClusterQueuePreemption, preemption
from muster.workloads.queues.reading import (
    NO_NAMESPACE,
    FlavorGroup,
    FlavorReading,
    QueueAlias,
    QueueReading,
    created_at,
    queue_name,
)
from muster.workloads.queues.statusmeta import StatusMeta

DIALECT: Final = "kueue"
GROUP: Final = "kueue.x-k8s.io"
DEFAULT_QUEUE: Final = "default"

_STRICT, _BEST_EFFORT = "StrictFIFO", "BestEffortFIFO"
_STOP: Final = ("None", "Hold", "HoldAndDrain")
_FUNGIBILITY: Final = ("MayStopSearch", "TryNextFlavor", "Borrow", "Preempt")
_PREFERENCE: Final = ("BorrowingOverPreemption", "PreemptionOverBorrowing")
_BY_USE: Final = "UsageBasedAdmissionFairSharing"
_SCOPE: Final = ("NoAdmissionFairSharing", _BY_USE)
_INT32: Final = 2**31
_FLAVOR_FIRST: Final = "a gang takes the first flavor in which it fits before others give way"
_DRAIN: Final = "what runs is not ended; new gangs wait, as with Hold"


class ResourceQuota(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 ResourceQuota."""

    name: str = ""
    nominal_quota: wire.Quantity | None = None
    borrowing_limit: wire.Quantity | None = None
    lending_limit: wire.Quantity | None = None


class FlavorQuotas(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 FlavorQuotas."""

    name: str = ""
    resources: tuple[ResourceQuota, ...] = ()


class ResourceGroup(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 ResourceGroup."""

    covered_resources: tuple[str, ...] = ()
    flavors: tuple[FlavorQuotas, ...] = ()


class FairSharing(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 FairSharing."""

    weight: wire.Quantity | None = None


class FlavorFungibility(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 FlavorFungibility."""

    when_can_borrow: str = ""
    when_can_preempt: str = ""
    preference: str = ""


class AdmissionCheckRule(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 AdmissionCheckStrategyRule."""

    name: str = ""
    on_flavors: tuple[str, ...] = ()


class AdmissionChecksStrategy(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 AdmissionChecksStrategy."""

    admission_checks: tuple[AdmissionCheckRule, ...] = ()


class AdmissionScope(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 AdmissionScope."""

    admission_mode: str = ""


class ClusterQueueSpec(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 ClusterQueueSpec."""

    resource_groups: tuple[ResourceGroup, ...] = ()
    cohort_name: str = ""
    cohort: str = ""  # v1beta1
    queueing_strategy: str = ""
    namespace_selector: wire.LabelSelector | None = None
    flavor_fungibility: FlavorFungibility = FlavorFungibility()
    preemption: ClusterQueuePreemption = ClusterQueuePreemption()
    admission_checks: tuple[str, ...] = ()  # v1beta1
    admission_checks_strategy: AdmissionChecksStrategy = AdmissionChecksStrategy()
    stop_policy: str = ""
    fair_sharing: FairSharing = FairSharing()
    admission_scope: AdmissionScope = AdmissionScope()
    concurrent_admission_policy: dict[str, object] | None = None


class ClusterQueue(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 ClusterQueue."""

    metadata: StatusMeta = StatusMeta()
    spec: ClusterQueueSpec = ClusterQueueSpec()
    #: as it stands, so that an equal one is not written again
    status: dict[str, object] = msgspec.field(default_factory=dict)


class CohortSpec(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 CohortSpec."""

    parent_name: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()
    fair_sharing: FairSharing = FairSharing()


class Cohort(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 Cohort."""

    metadata: StatusMeta = StatusMeta()
    spec: CohortSpec = CohortSpec()
    #: as it stands, so that an equal one is not written again
    status: dict[str, object] = msgspec.field(default_factory=dict)


class LocalQueueSpec(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 LocalQueueSpec."""

    cluster_queue: str = ""
    stop_policy: str = ""
    fair_sharing: FairSharing = FairSharing()


class LocalQueue(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 LocalQueue."""

    metadata: StatusMeta = StatusMeta()
    spec: LocalQueueSpec = LocalQueueSpec()
    #: as it stands, so that an equal one is not written again
    status: dict[str, object] = msgspec.field(default_factory=dict)


class ResourceFlavorSpec(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 ResourceFlavorSpec."""

    node_labels: dict[str, str] = msgspec.field(default_factory=dict)
    node_taints: tuple[wire.Taint, ...] = ()
    tolerations: tuple[wire.Toleration, ...] = ()
    topology_name: str = ""


class ResourceFlavor(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 ResourceFlavor."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: ResourceFlavorSpec = ResourceFlavorSpec()


class WorkloadPriorityClass(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 WorkloadPriorityClass."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    value: int = 0


# --- ClusterQueue -------------------------------------------------------------------------------


def cluster_queue(found: ClusterQueue) -> QueueReading:
    """Return what a ClusterQueue says."""
    spec, findings = found.spec, QueueFindings()
    name, cohort = queue_name(DIALECT, found.metadata.name), spec.cohort_name or spec.cohort
    quotas = _quotas(spec.resource_groups, findings, has_parent=bool(cohort))
    namespaces = _namespaces(spec.namespace_selector, findings)
    weight = _weight(spec.fair_sharing, findings)
    policy = preemption(spec.preemption, findings)
    _policies(spec, findings)
    is_ending = found.metadata.deletion_timestamp is not None
    is_open = spec.stop_policy in ("", "None") and not is_ending and not findings.problems
    queue = QueueSpec(
        name, _cohort(cohort), quotas, weight,
        is_strict=spec.queueing_strategy == _STRICT, is_open=is_open, preemption=policy,
        goes_by_users=spec.admission_scope.admission_mode == _BY_USE,
    )  # fmt: skip
    return QueueReading(
        specs=(queue,),
        implied=_implied(cohort),
        namespaces={} if namespaces == () else {name: namespaces},
        groups={name: tuple(_groups(spec.resource_groups))},
        problems=tuple(findings.problems),
        unobeyed=tuple(findings.unobeyed),
        unobeyed_without_room=tuple(findings.unobeyed_without_room),
        unobeyed_without_past=tuple(findings.unobeyed_without_past),
        unobeyed_without_workloads=tuple(findings.unobeyed_without_workloads),
        since=created_at(found.metadata),
    )


def admission_checks(found: ClusterQueue) -> Mapping[str, tuple[str, ...]]:
    """Return the checks that a ClusterQueue asks for, by name: for which flavors, none for all."""
    rules = found.spec.admission_checks_strategy.admission_checks
    named = {rule.name: rule.on_flavors for rule in rules}
    return {**dict.fromkeys(found.spec.admission_checks, ()), **named}


def _policies(spec: ClusterQueueSpec, findings: QueueFindings) -> None:
    """Check the words of a ClusterQueue, and name those that are not obeyed."""
    findings.one_of("spec.queueingStrategy", spec.queueing_strategy, (_STRICT, _BEST_EFFORT))
    findings.one_of("spec.stopPolicy", spec.stop_policy, _STOP)
    if spec.stop_policy == "HoldAndDrain":
        findings.ignored("spec.stopPolicy", f"HoldAndDrain: {_DRAIN}")
    _fungibility(spec.flavor_fungibility, findings)
    mode = spec.admission_scope.admission_mode
    findings.one_of("spec.admissionScope.admissionMode", mode, _SCOPE)
    if mode == _BY_USE:
        findings.needs_past("spec.admissionScope.admissionMode", mode)
    checks = [rule.name for rule in spec.admission_checks_strategy.admission_checks]
    for check in (*spec.admission_checks, *checks):
        findings.needs_workloads("spec.admissionChecks", check)
    if spec.concurrent_admission_policy is not None:
        why = "a gang has one flavor at a time; it stays where it was admitted first"
        findings.ignored("spec.concurrentAdmissionPolicy", why)


def _fungibility(found: FlavorFungibility, findings: QueueFindings) -> None:
    path = "spec.flavorFungibility"
    findings.one_of(f"{path}.whenCanBorrow", found.when_can_borrow, _FUNGIBILITY)
    findings.one_of(f"{path}.whenCanPreempt", found.when_can_preempt, _FUNGIBILITY)
    findings.one_of(f"{path}.preference", found.preference, _PREFERENCE)
    if found.when_can_borrow == "TryNextFlavor":
        why = "TryNextFlavor: the first flavor in which a gang fits is taken, borrowed or not"
        findings.ignored(f"{path}.whenCanBorrow", why)
    if found.when_can_preempt in ("MayStopSearch", "Preempt"):
        findings.ignored(f"{path}.whenCanPreempt", f"{found.when_can_preempt}: {_FLAVOR_FIRST}")
    if found.preference == _PREFERENCE[1]:
        findings.ignored(f"{path}.preference", f"{found.preference}: {_FLAVOR_FIRST}")


def _namespaces(
    source: wire.LabelSelector | None, findings: QueueFindings
) -> tuple[Requirement, ...]:
    """Return requirements over namespaces, none for a selector that selects all."""
    field = "spec.namespaceSelector"
    if source is None:
        return NO_NAMESPACE
    for one in source.match_expressions:
        if one.operator in (Operator.GT, Operator.LT):
            findings.wrong(field, one.operator, "In, NotIn, Exists or DoesNotExist")
    try:
        found = selectors.label_selector(source)
    except UnknownOperator as error:
        findings.wrong(field, error, "In, NotIn, Exists or DoesNotExist")
        return NO_NAMESPACE
    return NO_NAMESPACE if found is None else found.requirements


# --- quotas ---------------------------------------------------------------------------------------


def _quotas(
    groups: tuple[ResourceGroup, ...], findings: QueueFindings, *, has_parent: bool
) -> dict[Cell, Quota]:
    """Return the numbers of all groups; the second number of a cell is a problem."""
    found: dict[Cell, Quota] = {}
    for field, flavor, written in _written(groups):
        cell = Cell(flavor, written.name)
        if cell in found:
            allowed = f"{flavor} has a quota for it already: keep one of the two"
            findings.wrong(f"{field}.name", written.name, allowed)
            continue
        found[cell] = _quota(field, written, findings, has_parent=has_parent)
    return found


def _written(groups: tuple[ResourceGroup, ...]) -> Iterator[tuple[str, str, ResourceQuota]]:
    """Yield each quota with where it stands and its flavor."""
    for i, group in enumerate(groups):
        for j, flavor in enumerate(group.flavors):
            for k, one in enumerate(flavor.resources):
                yield f"spec.resourceGroups[{i}].flavors[{j}].resources[{k}]", flavor.name, one


def _quota(
    field: str, written: ResourceQuota, findings: QueueFindings, *, has_parent: bool
) -> Quota:
    lent = f"{field}.lendingLimit", written.lending_limit
    borrowed = f"{field}.borrowingLimit", written.borrowing_limit
    for at, limit in () if has_parent else (lent, borrowed):
        if limit is not None:
            findings.ignored(at, "means nothing without a cohort")
    return Quota(
        entitled=findings.amount(f"{field}.nominalQuota", written.name, written.nominal_quota, 0),
        lendable=findings.amount(lent[0], written.name, lent[1], UNLIMITED),
        borrowable=findings.amount(borrowed[0], written.name, borrowed[1], UNLIMITED),
    )


def _groups(groups: tuple[ResourceGroup, ...]) -> Iterator[FlavorGroup]:
    for group in groups:
        flavors = tuple(dict.fromkeys(flavor.name for flavor in group.flavors))
        yield FlavorGroup(tuple(dict.fromkeys(group.covered_resources)), flavors)


def _weight(found: FairSharing, findings: QueueFindings) -> int:
    return findings.thousandths("spec.fairSharing.weight", found.weight, WEIGHT_ONE)


# --- the other kinds ------------------------------------------------------------------------------


def cohort(found: Cohort) -> QueueReading:
    """Return what a Cohort says: quotas that are nobody's own, on top of what its children lend."""
    spec, findings = found.spec, QueueFindings()
    parent = spec.parent_name
    quotas = _quotas(spec.resource_groups, findings, has_parent=bool(parent))
    weight = _weight(spec.fair_sharing, findings)
    name = queue_name(DIALECT, "cohort", found.metadata.name)
    is_open = not findings.problems
    return QueueReading(
        specs=(QueueSpec(name, _cohort(parent), quotas, weight, is_open=is_open),),
        implied=() if parent == found.metadata.name else _implied(parent),
        problems=tuple(findings.problems),
        unobeyed=tuple(findings.unobeyed),
        since=created_at(found.metadata),
    )


def _cohort(name: str) -> QueueName | None:
    return queue_name(DIALECT, "cohort", name) if name else None


def _implied(name: str) -> tuple[QueueSpec, ...]:
    found = _cohort(name)
    return () if found is None else (QueueSpec(found),)


def local_queue(found: LocalQueue) -> QueueReading:
    """Return what a LocalQueue says: how gangs of its namespace name a ClusterQueue."""
    spec, meta, findings = found.spec, found.metadata, QueueFindings()
    findings.one_of("spec.stopPolicy", spec.stop_policy, _STOP)
    if spec.stop_policy == "HoldAndDrain":
        findings.ignored("spec.stopPolicy", f"HoldAndDrain: {_DRAIN}")
    if spec.fair_sharing.weight is not None:
        findings.needs_past("spec.fairSharing.weight", spec.fair_sharing.weight)
    weight = _weight(spec.fair_sharing, findings)
    if not spec.cluster_queue:
        findings.wrong("spec.clusterQueue", "", "the name of a ClusterQueue")
    texts = (meta.name, "") if meta.name == DEFAULT_QUEUE else (meta.name,)
    is_open = spec.stop_policy in ("", "None") and not findings.problems
    queue = queue_name(DIALECT, spec.cluster_queue)
    return QueueReading(
        aliases=tuple(
            QueueAlias(text, queue, meta.namespace, is_open=is_open, weight=weight)
            for text in texts
        ),
        problems=tuple(findings.problems),
        unobeyed=tuple(findings.unobeyed),
        unobeyed_without_past=tuple(findings.unobeyed_without_past),
        since=created_at(meta),
    )


def resource_flavor(found: ResourceFlavor) -> QueueReading:
    """Return what a ResourceFlavor says; one with a wrong word has no nodes."""
    spec, findings = found.spec, QueueFindings()
    if spec.topology_name:
        why = f"{spec.topology_name}: levels are those of Muster's own configuration"
        findings.ignored("spec.topologyName", why)
    flavors: tuple[FlavorReading, ...] = ()
    try:
        taints = tuple(selectors.taint(taint) for taint in spec.node_taints)
        tolerations = selectors.tolerations(spec.tolerations)
        flavors = (FlavorReading(found.metadata.name, dict(spec.node_labels), taints, tolerations),)
    except UnknownOperator as error:
        findings.wrong("spec", error, "an effect or operator of core/v1")
    return QueueReading(
        flavors=flavors,
        problems=tuple(findings.problems),
        unobeyed=tuple(findings.unobeyed),
        since=created_at(found.metadata),
    )


def workload_priority_class(found: WorkloadPriorityClass) -> QueueReading:
    """Return what a WorkloadPriorityClass says: a priority that counts in queues only."""
    findings = QueueFindings()
    if not -_INT32 <= found.value < _INT32:
        findings.wrong("value", found.value, f"a whole number from {-_INT32} to {_INT32 - 1}")
    priorities = {} if findings.problems else {found.metadata.name: found.value}
    return QueueReading(
        priorities=priorities,
        problems=tuple(findings.problems),
        since=created_at(found.metadata),
    )
