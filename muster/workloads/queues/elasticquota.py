"""ElasticQuotas of scheduler-plugins (scheduling.x-k8s.io/v1alpha1).

::

    elasticquota/*                  the pool: what all of them have together
    ├── elasticquota/team-a/quota   gangs of the namespace team-a that name no queue
    └── elasticquota/team-b/quota

A namespace can take back its ``min`` and never has more than its ``max``. All together have what
their ``min`` add up to, however many nodes there are. Where a ``max`` is written, CPU, memory and
ephemeral storage that it does not name are forbidden; other resources are unlimited
(pkg/capacityscheduling/elasticquota.go at 0.34, ``cmp2``, ``aggregatedUsedOverMinWith``).

Koordinator's ElasticQuota has the same fields, another group, and its tree in labels
(``muster.workloads.queues.koordinator``).
"""

from typing import Final

import msgspec

from muster.cluster.quota.cells import UNLIMITED, Cell, Quota
from muster.cluster.quota.queuespec import QueueSpec
from muster.kube import quantity, wire
from muster.workloads.queues.findings import QueueFindings
from muster.workloads.queues.preemption.quotapolicies import QUOTA_PREEMPTION
from muster.workloads.queues.reading import QueueAlias, QueueReading, created_at, queue_name
from muster.workloads.queues.statusmeta import StatusMeta

DIALECT: Final = "elasticquota"
GROUP: Final = "scheduling.x-k8s.io"
POOL: Final = queue_name(DIALECT, "*")

_FORBIDDEN_UNNAMED: Final = (quantity.CPU, "memory", "ephemeral-storage")


class ElasticQuotaSpec(wire.Wire, frozen=True):
    """scheduling.x-k8s.io/v1alpha1 ElasticQuotaSpec."""

    min: wire.Quantities = msgspec.field(default_factory=dict)
    max: wire.Quantities = msgspec.field(default_factory=dict)


class ElasticQuota(wire.Wire, frozen=True):
    """scheduling.x-k8s.io/v1alpha1 ElasticQuota, and Koordinator's of scheduling.sigs.k8s.io."""

    metadata: StatusMeta = StatusMeta()
    spec: ElasticQuotaSpec = ElasticQuotaSpec()
    #: as it stands, so that an equal one is not written again
    status: dict[str, object] = msgspec.field(default_factory=dict)


def elastic_quota(found: ElasticQuota) -> QueueReading:
    """Return what an ElasticQuota says."""
    meta, findings = found.metadata, QueueFindings()
    quotas = {**_forbidden(found.spec), **min_and_max(found.spec, findings)}
    name = queue_name(DIALECT, meta.namespace, meta.name)
    return QueueReading(
        specs=(
            QueueSpec(
                name, POOL, quotas, is_open=not findings.problems, preemption=QUOTA_PREEMPTION
            ),
        ),
        implied=(QueueSpec(POOL),),
        aliases=(QueueAlias("", name, meta.namespace),),
        problems=tuple(findings.problems),
        unobeyed=tuple(findings.unobeyed),
        since=created_at(meta),
    )


def min_and_max(
    spec: ElasticQuotaSpec, findings: QueueFindings, *, is_lent: bool = True
) -> dict[Cell, Quota]:
    """Return the numbers of all resources that ``min`` or ``max`` names."""
    found: dict[Cell, Quota] = {}
    for name in dict.fromkeys([*spec.min, *spec.max]):
        entitled = findings.amount(f"spec.min[{name}]", name, spec.min.get(name), 0)
        limit = findings.amount(f"spec.max[{name}]", name, spec.max.get(name), UNLIMITED)
        if entitled > limit:
            allowed = f"at most what spec.max says, {spec.max[name]}"
            findings.wrong(f"spec.min[{name}]", spec.min[name], allowed)
        lendable = UNLIMITED if is_lent else 0
        found[Cell("", name)] = Quota(entitled, lendable, limit=limit)
    return found


def _forbidden(spec: ElasticQuotaSpec) -> dict[Cell, Quota]:
    names = _FORBIDDEN_UNNAMED if spec.max else ()
    return {Cell("", name): Quota(limit=0) for name in names if name not in spec.max}
