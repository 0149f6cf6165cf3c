"""Readers of queues: whatever values an object has, a reading comes out, and its numbers add up."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.quota.audit import audit
from muster.cluster.quota.cells import UNLIMITED, Cell
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.tree import QuotaTree
from muster.workloads.queues import kai, koordinator, kueue, volcano
from muster.workloads.queues.elasticquota import ElasticQuota
from muster.workloads.queues.reading import QueueReading
from muster.workloads.queues.registry import KINDS, QueueKind
from muster.workloads.queues.yunikorn import queues_yaml

GPU = "nvidia.com/gpu"
NUMBERS = st.sampled_from(
    ["0", "1", "500m", "8", "1e30", "-1", "", "x", "9223372036854775808", "0.0000000001", 0, 7, -3,
     1.5, 1e300, -1.0, float("inf"), float("nan"), "∞", "1Ki", "+2", "x\ny", "9" * 500]
)  # fmt: skip
NAMES = st.sampled_from(
    ["a", "b", "root", "default", GPU, "cpu", "memory", "", "Größe", "a\tb", "n" * 300]
)
WORDS = st.sampled_from(["", "true", "false", "None", "Hold", "fifo", "Closed", "Any", "🂡", "a\nb"])
AMOUNTS = st.dictionaries(NAMES, NUMBERS, max_size=3)
COUNTS = st.sampled_from([0, 1, -1, 70_000, 2**31, 2**63 - 1, -(2**63)])


def maps(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


QUOTA = maps(name=NAMES, nominalQuota=NUMBERS, borrowingLimit=NUMBERS, lendingLimit=NUMBERS)
FLAVOR = maps(name=NAMES, resources=st.lists(QUOTA, max_size=3))
GROUPS = st.lists(
    maps(coveredResources=st.lists(NAMES, max_size=2), flavors=st.lists(FLAVOR, max_size=2)),
    max_size=2,
)
SHARING = maps(weight=NUMBERS)
EXPRESSIONS = st.lists(maps(key=NAMES, operator=WORDS, values=st.lists(NAMES)), max_size=2)
SELECTOR = maps(matchLabels=st.dictionaries(NAMES, NAMES), matchExpressions=EXPRESSIONS)
KAI_RESOURCE = maps(quota=NUMBERS, limit=NUMBERS, overQuotaWeight=NUMBERS, lendingLimit=NUMBERS)
TAINT = maps(key=NAMES, value=NAMES, effect=WORDS)
KOORDINATOR = st.dictionaries(
    st.sampled_from(["parent", "is-parent", "is-root", "allow-lent-resource"]).map(
        lambda key: koordinator.PREFIX + key
    ),
    WORDS,
)
JSON = st.sampled_from(["", "[", '["a"]', '{"cpu": 3}', '{"cpu": "-1", "g": 2}', '{"a": [1]}'])
METAS = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "namespace": NAMES,
        "labels": KOORDINATOR,
        "annotations": st.dictionaries(
            st.sampled_from(["shared-weight", "namespaces"]).map(
                lambda key: koordinator.PREFIX + key
            ),
            JSON,
        ),
    },
)
SPECS = st.one_of(
    maps(
        cohortName=NAMES, cohort=NAMES, parentName=NAMES, clusterQueue=NAMES, stopPolicy=WORDS,
        resourceGroups=GROUPS, queueingStrategy=WORDS, namespaceSelector=SELECTOR,
        fairSharing=SHARING, preemption=maps(withinClusterQueue=WORDS),
        nodeTaints=st.lists(TAINT, max_size=2), tolerations=st.lists(TAINT, max_size=2),
    ),
    maps(
        weight=COUNTS, priority=COUNTS, parent=NAMES, capability=AMOUNTS, deserved=AMOUNTS,
        guarantee=maps(resource=AMOUNTS), state=WORDS, dequeueStrategy=WORDS,
    ),
    maps(
        parentQueue=NAMES, priority=COUNTS,
        resources=maps(cpu=KAI_RESOURCE, memory=KAI_RESOURCE, gpu=KAI_RESOURCE),
    ),
    maps(min=AMOUNTS, max=AMOUNTS),
)  # fmt: skip
OBJECTS = st.fixed_dictionaries(
    {"metadata": METAS}, optional={"spec": SPECS, "value": COUNTS, "status": maps(state=WORDS)}
)


def check(reading: QueueReading) -> None:
    tree = QuotaTree()
    for spec in (*reading.implied, *reading.specs):
        tree.put(spec)
        assert 0 <= spec.weight <= UNLIMITED
        assert -(2**31) <= spec.priority < 2**31
        for quota in spec.quotas.values():
            assert min(quota.entitled, quota.lendable, quota.borrowable, quota.limit) >= 0
            assert max(quota.entitled, quota.lendable, quota.borrowable, quota.limit) <= UNLIMITED
    audit(tree, {})
    for text in (*reading.problems, *reading.unobeyed):
        assert text.isprintable()
        assert len(text) <= 401


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.plural}.{kind.group}")
@given(written=OBJECTS)
def test_every_object_that_decodes_can_be_read(
    kind: QueueKind[Any], written: dict[str, Any]
) -> None:
    try:
        found = msgspec.convert(written, kind.type)
    except msgspec.ValidationError:
        return
    reading = kind.read(found)
    check(reading)
    assert not (reading.problems and any(spec.is_open for spec in reading.specs))
    assert kind.read(found) == reading


YUNIKORN_QUEUES = st.recursive(
    maps(
        name=NAMES, parent=WORDS, maxapplications=WORDS, submitacl=WORDS,
        resources=maps(guaranteed=AMOUNTS, max=AMOUNTS),
        properties=st.dictionaries(
            st.sampled_from(["priority.offset", "application.sort.policy", "other"]), WORDS
        ),
    ),
    lambda inner: maps(name=NAMES, queues=st.lists(inner, max_size=3)),
    max_leaves=5,
)  # fmt: skip


@given(
    written=maps(
        partitions=st.lists(
            maps(name=NAMES, queues=st.lists(YUNIKORN_QUEUES, max_size=3), limits=WORDS),
            max_size=2,
        )
    )
)
def test_every_configuration_of_yunikorn_can_be_read(written: dict[str, Any]) -> None:
    reading = queues_yaml(msgspec.yaml.encode(written).decode())
    check(reading)
    names = [spec.name for spec in reading.specs]
    assert len(set(names)) == len(names)
    assert all(spec.parent in names[:n] for n, spec in enumerate(reading.specs) if spec.parent)


WHOLE = st.integers(0, 20)


def node_of(reading: QueueReading) -> QueueNode:
    tree = QuotaTree()
    for spec in (*reading.implied, *reading.specs):
        tree.put(spec)
    found = tree.find(reading.specs[-1].name)
    assert found is not None
    return found


@given(nominal=WHOLE, lending=WHOLE)
def test_kueue_keeps_what_is_above_the_lending_limit(nominal: int, lending: int) -> None:
    quota = {"name": GPU, "nominalQuota": nominal, "lendingLimit": lending}
    groups = [{"flavors": [{"name": "h100", "resources": [quota]}]}]
    written = {"metadata": {"name": "a"}, "spec": {"cohortName": "c", "resourceGroups": groups}}
    node = node_of(kueue.cluster_queue(msgspec.convert(written, kueue.ClusterQueue)))
    cell = Cell("h100", GPU)
    assert node.kept(cell) == max(0, nominal - lending)
    assert node.lent(cell) == min(nominal, lending)


@given(deserved=WHOLE, guarantee=WHOLE, capability=WHOLE)
def test_volcano_keeps_the_guarantee(deserved: int, guarantee: int, capability: int) -> None:
    spec = {
        "deserved": {GPU: deserved},
        "guarantee": {"resource": {GPU: guarantee}},
        "capability": {GPU: capability},
    }
    written = {"metadata": {"name": "a"}, "spec": spec}
    reading = volcano.queue(msgspec.convert(written, volcano.Queue))
    node = node_of(reading)
    assert node.kept(Cell("", GPU)) == guarantee
    assert node.entitled(Cell("", GPU)) == max(min(deserved, capability), guarantee)
    assert reading.specs[0].is_open == (guarantee <= capability)


@given(quota=st.integers(-1, 20), lending=st.none() | WHOLE)
def test_kai_keeps_what_is_above_the_lending_limit(quota: int, lending: int | None) -> None:
    gpu = {"quota": quota, "limit": -1} | ({} if lending is None else {"lendingLimit": lending})
    written = {"metadata": {"name": "a"}, "spec": {"resources": {"gpu": gpu}}}
    reading = kai.queue(msgspec.convert(written, kai.Queue))
    node, cell = node_of(reading), Cell("", GPU)
    assert reading.specs[0].is_open == (lending is None or quota == -1 or lending <= quota)
    if quota == -1:
        assert node.entitled(cell) == UNLIMITED
    elif reading.specs[0].is_open:
        assert node.kept(cell) == (0 if lending is None else quota - lending)


@given(minimum=WHOLE, is_lent=st.booleans())
def test_koordinator_keeps_a_min_that_is_not_lent(minimum: int, *, is_lent: bool) -> None:
    labels = {koordinator.PREFIX + "allow-lent-resource": "true" if is_lent else "false"}
    spec = {"min": {GPU: minimum}, "max": {GPU: 20}}
    written = {"metadata": {"name": "a", "labels": labels}, "spec": spec}
    node = node_of(koordinator.koordinator_quota(msgspec.convert(written, ElasticQuota)))
    assert node.kept(Cell("", GPU)) == (0 if is_lent else minimum)
