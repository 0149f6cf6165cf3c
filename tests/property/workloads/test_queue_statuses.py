"""Statuses of queues in any tree: sums are right, and what was written is not written again."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.clusters.queuesights import charged_tree, sight_of, uses

from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.workloads.queues import kai, kueue, muster, volcano
from muster.workloads.queues.elasticquota import ElasticQuota
from muster.workloads.queues.sight import GangCounts, changes
from muster.workloads.queues.statuses import STATUSES

CELLS = [Cell("", "cpu"), Cell("", "memory"), Cell("h100", "nvidia.com/gpu")]
AMOUNTS = st.dictionaries(st.sampled_from(CELLS), st.integers(0, 5000), max_size=3)
NAMES = st.integers(0, 5).map(lambda n: QueueName(f"muster/q{n}"))
QUOTA = st.builds(
    Quota, st.integers(0, 50), st.integers(0, 50) | st.just(2**63 - 1), st.just(2**63 - 1)
)
SPECS = st.lists(
    st.builds(
        QueueSpec,
        name=NAMES,
        parent=st.none() | NAMES,
        quotas=st.dictionaries(st.sampled_from(CELLS), QUOTA, max_size=3),
        weight=st.sampled_from([0, 1000, 2500]),
        is_whole=st.booleans(),
        is_open=st.booleans(),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda spec: spec.name,
)
GANGS = st.builds(
    GangCounts, st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.sampled_from(["", "g"])
)
OBJECTS: dict[str, Any] = {
    "queues.muster.dev": muster.OwnQueue(),
    "clusterqueues.kueue.x-k8s.io": kueue.ClusterQueue(),
    "cohorts.kueue.x-k8s.io": kueue.Cohort(),
    "localqueues.kueue.x-k8s.io": kueue.LocalQueue(),
    "queues.scheduling.volcano.sh": volcano.Queue(),
    "queues.scheduling.run.ai": kai.Queue(),
    "elasticquotas.scheduling.x-k8s.io": ElasticQuota(),
    "elasticquotas.scheduling.sigs.k8s.io": ElasticQuota(),
}


def merged(before: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return what an API server makes of a merge patch."""
    found = dict(before)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict):
            found[name] = merged(found[name] if isinstance(found.get(name), dict) else {}, value)
        else:
            found[name] = value
    return found


def below(node: QueueNode) -> list[QueueNode]:
    return [node, *(one for child in node.children.values() for one in below(child))]


@given(specs=SPECS, data=st.data())
def test_what_a_queue_uses_is_what_was_charged_to_it_and_below_it(
    specs: list[QueueSpec], data: st.DataObject
) -> None:
    charges = {spec.name: data.draw(AMOUNTS) for spec in specs}
    tree = charged_tree(specs, charges)
    found = uses(tree)
    assert set(found) == {spec.name for spec in specs}
    for node in tree.nodes():
        for cell in CELLS:
            sums = sum(charges[one.spec.name].get(cell, 0) for one in below(node))
            assert found[node.spec.name].get(cell, 0) == sums


@given(specs=SPECS, before=GANGS, now=GANGS, data=st.data())
def test_a_status_that_was_written_is_not_written_again(
    specs: list[QueueSpec], before: GangCounts, now: GangCounts, data: st.DataObject
) -> None:
    assert set(OBJECTS) == set(STATUSES)
    charges = {spec.name: data.draw(AMOUNTS) for spec in specs}
    name = specs[0].name
    idle, busy = charged_tree(specs, {}), charged_tree(specs, charges)
    for kind, found in OBJECTS.items():
        wanted, status = STATUSES[kind], dict[str, Any]()
        for tree, gangs, at in ((idle, before, 1.0), (busy, now, 2.0)):
            sight = sight_of(tree, name, gangs=gangs, now=at)
            shown = msgspec.structs.replace(found, status=status)
            status = merged(status, dict(changes(status, wanted(shown, sight))))
            shown = msgspec.structs.replace(found, status=status)
            later = sight_of(tree, name, gangs=gangs, now=at + 60)
            assert changes(status, wanted(shown, later)) == {}
