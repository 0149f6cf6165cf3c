"""Whatever stands in the labels of a pod, reading its place in a gang never fails."""

from hypothesis import given
from hypothesis import strategies as st
from support.wirepods import pod

from workloads import kubeflow, leaderworkerset, ray, registry, spark
from workloads.ranks import MAX_RANK

KEYS = (
    *registry.markers(), kubeflow.OPERATOR, kubeflow.REPLICA_TYPE, kubeflow.REPLICA_INDEX,
    kubeflow.JOB_ROLE, ray.NODE_TYPE, ray.WORKER_GROUP, leaderworkerset.GROUP_INDEX,
    leaderworkerset.WORKER_INDEX, spark.APP, spark.ROLE, spark.EXECUTOR_ID, spark.OPERATOR_APP,
)  # fmt: skip
TELLING = ("mpi-operator", "pytorchjob-controller", "head", "worker", "executor", "launcher")
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
