"""Koordinator's ElasticQuotas (scheduling.sigs.k8s.io/v1alpha1, tree in labels).

::

    koordinator/koordinator-root-quota      the cluster
    ├── koordinator/koordinator-default-quota   gangs that name no queue
    └── koordinator/research                label is-parent: true
        ├── koordinator/vision              label parent: research
        └── koordinator/speech

Names are unique in the cluster, whatever namespace the objects are in. A gang names its queue in
the label ``quota.scheduling.koordinator.sh/name``; else its namespace does: a quota of the
namespace's name in it, or one whose annotation ``namespaces`` lists it
(pkg/scheduler/plugins/elasticquota/plugin_helper.go at 1.6, ``GetQuotaName``).

**Numbers.** ``min`` can be taken back, ``max`` is the most; with ``allow-lent-resource: false`` an
idle ``min`` stays free. A parent's numbers contain its children's. The root of a tree
(``is-root``) stands by itself: its ``min`` is what the nodes of its profile have.

**Weight.** ``shared-weight`` gives one by resource, ``max`` where it is absent
(apis/extension/elastic_quota.go, ``GetSharedWeight``). A queue has one here: that of the
accelerator, of the CPU where there is none.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from muster.cluster.quota.cells import UNLIMITED
from muster.cluster.quota.queuespec import WEIGHT_ONE, QueueName, QueueSpec
from muster.kube import quantity, wire
from muster.workloads.queues.elasticquota import ElasticQuota, min_and_max
from muster.workloads.queues.findings import QueueFindings
from muster.workloads.queues.preemption.quotapolicies import KOORDINATOR_PREEMPTION
from muster.workloads.queues.reading import (
    QueueAlias,
    QueueReading,
    created_at,
    queue_name,
    whole_cluster,
)

DIALECT: Final = "koordinator"
GROUP: Final = "scheduling.sigs.k8s.io"
PREFIX: Final = "quota.scheduling.koordinator.sh/"
ROOT: Final = "koordinator-root-quota"
DEFAULT_QUEUE: Final = "koordinator-default-quota"

_PLAIN: Final = (quantity.CPU, "memory", "ephemeral-storage", "pods")
_SHARED_WEIGHT: Final = f"metadata.annotations[{PREFIX}shared-weight]"
_NAMESPACES: Final = f"metadata.annotations[{PREFIX}namespaces]"


def koordinator_quota(found: ElasticQuota) -> QueueReading:
    """Return what an ElasticQuota of Koordinator says."""
    meta, findings = found.metadata, QueueFindings()
    is_lent = _flag(meta, "allow-lent-resource", findings, otherwise=True)
    is_parent = _flag(meta, "is-parent", findings, otherwise=False)
    quotas = {} if meta.name == ROOT else min_and_max(found.spec, findings, is_lent=is_lent)
    weight = WEIGHT_ONE if meta.name == ROOT else _weight(found, findings)
    parent = _parent(meta, findings)
    name = queue_name(DIALECT, meta.name)
    aliases = () if is_parent or meta.name == ROOT else _aliases(meta, name, findings)
    spec = QueueSpec(
        name, parent, quotas, weight, is_whole=True,
        is_open=not findings.problems, is_cluster=meta.name == ROOT,
        preemption=KOORDINATOR_PREEMPTION,
    )  # fmt: skip
    return QueueReading(
        specs=(spec,),
        implied=_implied(parent),
        aliases=aliases,
        problems=tuple(findings.problems),
        unobeyed=tuple(findings.unobeyed),
        since=created_at(meta),
    )


def _implied(parent: QueueName | None) -> tuple[QueueSpec, ...]:
    if parent != queue_name(DIALECT, ROOT):
        return ()
    return (whole_cluster(parent, preemption=KOORDINATOR_PREEMPTION),)


def _parent(meta: wire.ObjectMeta, findings: QueueFindings) -> QueueName | None:
    if meta.name == ROOT or _flag(meta, "is-root", findings, otherwise=False):
        return None
    return queue_name(DIALECT, meta.labels.get(f"{PREFIX}parent") or ROOT)


def _flag(meta: wire.ObjectMeta, key: str, findings: QueueFindings, *, otherwise: bool) -> bool:
    """Return a label that is true or false."""
    written = meta.labels.get(PREFIX + key, "")
    findings.one_of(f"metadata.labels[{PREFIX}{key}]", written, ("true", "false"))
    return written == "true" if written in ("true", "false") else otherwise


def _aliases(
    meta: wire.ObjectMeta, name: QueueName, findings: QueueFindings
) -> tuple[QueueAlias, ...]:
    spaces = [meta.namespace] if meta.name == meta.namespace else []
    spaces += _namespaces(meta, findings)
    if meta.name == DEFAULT_QUEUE:
        spaces.append("")
    own = [QueueAlias("", name, space) for space in dict.fromkeys(spaces)]
    return (QueueAlias(meta.name, name), *own)


def _namespaces(meta: wire.ObjectMeta, findings: QueueFindings) -> list[str]:
    written = meta.annotations.get(f"{PREFIX}namespaces", "")
    try:
        return msgspec.json.decode(written, type=list[str]) if written else []
    except msgspec.DecodeError:
        findings.wrong(_NAMESPACES, written, 'a list of names in JSON, like ["team-a"]')
        return []


def _weight(found: ElasticQuota, findings: QueueFindings) -> int:
    """Return the weight of one resource in thousandths, 1 where it is unlimited."""
    weights = _shared_weight(found.metadata, findings) or found.spec.max
    resource = _weighed(weights)
    weight = WEIGHT_ONE
    if resource is not None:
        field = f"{_SHARED_WEIGHT}[{resource}]"
        weight = findings.thousandths(field, weights[resource], WEIGHT_ONE)
    return WEIGHT_ONE if weight >= UNLIMITED else weight


def _shared_weight(meta: wire.ObjectMeta, findings: QueueFindings) -> Mapping[str, wire.Quantity]:
    written = meta.annotations.get(f"{PREFIX}shared-weight", "")
    try:
        found = msgspec.json.decode(written, type=dict[str, wire.Quantity]) if written else {}
    except msgspec.DecodeError:
        findings.wrong(_SHARED_WEIGHT, written, 'amounts in JSON, like {"cpu": "40"}')
        return {}
    resource = _weighed(found)
    if len(found) > 1:
        findings.ignored(_SHARED_WEIGHT, f"a queue has one weight, that of {resource}")
    return found


def _weighed(weights: Mapping[str, wire.Quantity]) -> str | None:
    """Return the resource whose weight counts: an accelerator, else CPU, else the first."""
    others = sorted(name for name in weights if name not in _PLAIN)
    plain = [name for name in _PLAIN if name in weights]
    return next(iter([*others, *plain]), None)
