"""A pod's place is what its owner says, whatever group the owner's operator names beside it."""

from hypothesis import given
from hypothesis import strategies as st
from support.pods.wirepods import pod

from muster.cluster.ids import GangKey
from muster.kube import names
from muster.workloads import registry

Labels = dict[str, str]
KINDS = ("pytorchjob", "tfjob", "xgboostjob", "paddlejob", "jaxjob")
GROUP_KEYS = (
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "pod-group-name",
    "pod-group.scheduling.sigs.k8s.io",
    "scheduling.x-k8s.io/pod-group",
)


def training(kind: str) -> tuple[Labels, tuple[str, ...]]:
    prefix = "training.kubeflow.org/"
    operator = "mpi-operator" if kind == "mpijob" else f"{kind}-controller"
    labels = {f"{prefix}job-name": "x", f"{prefix}operator-name": operator}
    return labels | {f"{prefix}replica-type": "worker", f"{prefix}replica-index": "1"}, ("x",)


def ray() -> tuple[Labels, tuple[str, ...]]:
    labels = {"ray.io/cluster": "x-5k2p", "ray.io/node-type": "worker", "ray.io/group": "w"}
    labels["ray.io/originated-from-cr-name"] = "x"
    return labels, ("x-5k2p", "ray-x-5k2p-pg", "ray-x-pg", "x")


def worker_set() -> tuple[Labels, tuple[str, ...]]:
    prefix = "leaderworkerset.sigs.k8s.io/"
    labels = {f"{prefix}name": "x", f"{prefix}group-index": "2", f"{prefix}worker-index": "1"}
    return labels, ("x-2-5c9f7d",)


OWNED = st.sampled_from([*map(training, (*KINDS, "mpijob")), ray(), worker_set()])


@given(owned=OWNED, key=st.sampled_from(GROUP_KEYS), data=st.data())
def test_the_group_that_an_operator_makes_changes_nothing(
    owned: tuple[Labels, tuple[str, ...]], key: str, data: st.DataObject
) -> None:
    labels, groups = owned
    named = data.draw(st.sampled_from(groups))
    alone = registry.place(pod("p", labels=labels))
    assert alone is not None
    assert registry.place(pod("p", labels=labels | {key: named})) == alone


def test_kueues_group_for_a_worker_set_does_not_let_its_pods_go_one_by_one() -> None:
    labels, _ = worker_set()
    group = {"kueue.x-k8s.io/pod-group-name": "leaderworkerset-x-2-1f2e3"}
    notes = {"kueue.x-k8s.io/pod-group-total-count": "4"}
    notes["kueue.x-k8s.io/pod-group-serving"] = "true"
    placed = registry.place(pod("p", labels=labels | group, annotations=notes))
    assert placed == registry.place(pod("p", labels=labels))


@given(owned=OWNED, key=st.sampled_from(GROUP_KEYS))
def test_a_group_of_another_name_is_the_users_unless_its_object_is_an_operators(
    owned: tuple[Labels, tuple[str, ...]], key: str
) -> None:
    labels, _ = owned
    named = pod("p", labels=labels | {key: "together"})
    placed = registry.place(named)
    assert placed is not None
    assert placed.member.key.endswith("/together")
    group: GangKey = placed.member.key
    assert registry.place(named, lambda asked: asked == group) == registry.place(
        pod("p", labels=labels)
    )


@given(owned=OWNED, key=st.sampled_from(GROUP_KEYS))
def test_musters_own_label_goes_before_both(
    owned: tuple[Labels, tuple[str, ...]], key: str
) -> None:
    labels, groups = owned
    placed = registry.place(pod("p", labels=labels | {key: groups[0], names.GANG: "g"}))
    assert placed is not None
    assert placed.dialect.name == "muster"
