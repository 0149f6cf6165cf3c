"""Live nodes grouped into pools, one change after the other.

::

    pool a: gpu-tier=high, 8 GPUs          a0 a1 a2 …
    pool b: gpu-tier=high, 8 GPUs, 8 NICs  b0 …         each node also has a label of its own
    pool c: nothing                        c0 …
"""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from support.injections.injecting import facts

from muster.injection.choosing.nodetable import FabricNodes, keys_of
from muster.kube.wire import Taint

TIER = "gpu-tier"
GPU, NIC = "nvidia.com/gpu", "rdma/roce_v2"
POOLS = {
    "a": ({TIER: "high"}, {GPU: "8"}),
    "b": ({TIER: "high"}, {GPU: "8", NIC: "8"}),
    "c": ({}, {}),
}
PLAIN = {"cpu": "64", "memory": "1Ti", "pods": "110", "hugepages-2Mi": "0"}
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "drop"]), st.integers(0, 9), st.sampled_from([*POOLS])),
    max_size=60,
)


def put(table: FabricNodes, number: int, pool: str, *taints: Taint) -> bool:
    labels, resources = POOLS[pool]
    own = {"kubernetes.io/hostname": f"n{number}"}
    return table.put(f"uid-{number}", labels | own, PLAIN | resources, taints)


@given(STEPS)
def test_the_groups_are_those_of_the_nodes_that_are_left(steps: list[tuple[str, int, str]]) -> None:
    table, expected = FabricNodes(frozenset({TIER})), dict[int, str]()
    for verb, number, pool in steps:
        if verb == "put":
            assert put(table, number, pool) == (expected.get(number) != pool)
            expected[number] = pool
        else:
            assert table.drop(f"uid-{number}") == (expected.pop(number, None) is not None)
        counts = Counter(expected.values())
        found = {(tuple(g.labels), tuple(g.allocatable)): g.count for g in table.nodes().groups}
        wanted = {
            (tuple(POOLS[p][0]), tuple(sorted(POOLS[p][1]))): count for p, count in counts.items()
        }
        assert found == wanted
        assert len(table) == len(expected)


@given(st.permutations(["a", "b", "c"]))
def test_the_order_of_groups_tells_nothing_of_what_happened_before(pools: list[str]) -> None:
    table, sorted_table = FabricNodes(frozenset({TIER})), FabricNodes(frozenset({TIER}))
    for number, pool in enumerate(pools):
        put(table, number, pool)
    for number, pool in enumerate(sorted(pools)):
        put(sorted_table, number, pool)
    assert table.nodes() == sorted_table.nodes()


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_after_a_list_only_what_is_in_it_is_left(before: set[int], listed: set[int]) -> None:
    table = FabricNodes(frozenset())
    for number in before:
        put(table, number, "a")
    changed = table.keep_only({f"uid-{number}" for number in listed})
    assert changed == bool(before - listed)
    assert len(table) == len(before & listed)


def test_what_is_only_so_at_the_moment_makes_no_group() -> None:
    table = FabricNodes(frozenset({TIER}))
    put(table, 0, "a", Taint(key="gpu-node", value="true", effect="NoSchedule"))
    away = Taint(key="node.kubernetes.io/unreachable", effect="NoExecute")
    put(table, 1, "a", away, Taint(key="gpu-node", value="true", effect="NoSchedule"))
    (group,) = table.nodes().groups
    assert (group.count, [taint.key for taint in group.taints]) == (2, ["gpu-node"])


def test_only_resources_of_vendors_tell_pools_apart_and_none_of_them_is_as_good_as_no_word() -> (
    None
):
    table = FabricNodes(frozenset())
    table.put("u0", {}, {"cpu": "1", GPU: "8", "scheduling.kubernetes.io/x": "1"}, ())
    table.put("u1", {}, {"cpu": "2", GPU: 8, NIC: "0", "odd.example/x": "many"}, ())
    (group,) = table.nodes().groups
    assert (group.allocatable, group.count) == ({GPU: 8}, 2)


def test_a_selector_by_a_label_that_is_not_told_leaves_every_node() -> None:
    table = FabricNodes(frozenset({TIER}))
    put(table, 0, "b")
    nodes = table.nodes()
    assert nodes.with_labels({"team": "a"}) == nodes.groups
    assert nodes.with_labels({"team": "a", TIER: "low"}) == ()


def test_nodes_are_told_apart_by_what_profiles_tiers_and_providers_select() -> None:
    known = facts({"profile": "generic-roce-hostnet", "nodeLabels": {"pool.example/fast": ""}})
    assert {"pool.example/fast", "gpu-tier", "cloud.google.com/gke-spot"} <= keys_of(known)
