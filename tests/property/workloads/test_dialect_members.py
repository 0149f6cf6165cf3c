"""Whatever stands in the labels of a pod, reading its place in a gang never fails."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.pods.wirepods import pod

from muster.kube import names
from muster.kube.firstlist import ownkeys
from muster.workloads import registry
from muster.workloads.dialect import Ranked
from muster.workloads.dialects import kubeflow, leaderworkerset, ray, spark
from muster.workloads.keys.ranks import COMPLETION_INDEX, MAX_RANK, POD_INDEX

KEYS = (
    *registry.markers(), kubeflow.OPERATOR, kubeflow.REPLICA_TYPE, kubeflow.REPLICA_INDEX,
    kubeflow.JOB_ROLE, ray.NODE_TYPE, ray.WORKER_GROUP, leaderworkerset.GROUP_INDEX,
    leaderworkerset.WORKER_INDEX, spark.APP, spark.ROLE, spark.EXECUTOR_ID, spark.OPERATOR_APP,
)  # fmt: skip
TELLING = ("mpi-operator", "pytorchjob-controller", "head", "worker", "executor", "launcher")
OWN = (COMPLETION_INDEX, POD_INDEX, names.PLAN, "k8s.ovn.org/pod-networks")
VALUES = st.one_of(
    st.sampled_from(TELLING),
    st.integers(-2, 2**40).map(str),
    st.text(max_size=8),
)


@given(
    name=st.one_of(st.from_regex(r"[a-z]{1,3}(-[0-9]{1,12}){0,3}", fullmatch=True), st.just("")),
    labels=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8),
)
def test_a_place_is_read_or_there_is_none(name: str, labels: dict[str, str]) -> None:
    place = registry.place_or_single(pod(name, labels=labels)).member
    dialect, namespace, local = place.key.split("/", 2)
    assert namespace == "team-a"
    assert dialect
    assert local or not name
    assert -1 <= place.rank <= MAX_RANK


@given(
    labels=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4),
    own=st.sets(st.sampled_from(OWN)),
    values=st.lists(VALUES, min_size=2 * len(OWN), max_size=2 * len(OWN)),
)
def test_siblings_of_a_ranked_dialect_differ_in_their_ranks(
    labels: dict[str, str], own: set[str], values: list[str]
) -> None:
    assert all(map(ownkeys.is_own, OWN))
    these, those = (
        pod("p", labels={names.GANG: "g", **labels, **dict(zip(sorted(own), some, strict=False))})
        for some in (values[: len(OWN)], values[len(OWN) :])
    )
    placed = registry.place(these)
    if placed is not None and isinstance(placed.dialect, Ranked):
        rank = placed.dialect.rank(those.metadata)
        assert registry.place(those) == replace(placed, member=replace(placed.member, rank=rank))


def test_muster_tells_ranks() -> None:
    assert isinstance(registry.dialect_of(pod("p", labels={names.GANG: "g"})), Ranked)
