"""What of a pod is its own is left out of what siblings share, and nothing else."""

import pytest
from support.pods.wirepods import pod

from muster.kube import names, wire
from muster.kube.firstlist import ownkeys

INDEX = "batch.kubernetes.io/job-completion-index"
CALICO = "cni.projectcalico.org/podIP"


def meta(labels: dict[str, str], annotations: dict[str, str]) -> wire.ObjectMeta:
    return wire.ObjectMeta(namespace="ns", labels=labels, annotations=annotations)


def test_an_index_a_plan_and_addresses_are_a_pods_own() -> None:
    one = meta({INDEX: "0", "app": "a"}, {names.PLAN: "x", CALICO: "10.0.0.1"})
    other = meta({INDEX: "1", "app": "a"}, {names.PLAN: "y", CALICO: "10.0.0.2"})
    assert ownkeys.shared(one) == ownkeys.shared(other)


@pytest.mark.parametrize(
    "other",
    [
        meta({INDEX: "0", "app": "b"}, {names.PLAN: "x"}),
        meta({"app": "a"}, {names.PLAN: "x"}),
        meta({INDEX: "0", "app": "a"}, {}),
        meta({INDEX: "0", "app": "a"}, {names.PLAN: "x", names.GANG_SIZE: "8"}),
    ],
)
def test_other_keys_and_whether_a_pod_has_own_ones_are_shared(other: wire.ObjectMeta) -> None:
    one = meta({INDEX: "0", "app": "a"}, {names.PLAN: "x"})
    assert ownkeys.shared(one) != ownkeys.shared(other)


def selecting(key: str) -> list[wire.PodSpec]:
    term = wire.PodAffinityTerm(topology_key=names.HOST, match_label_keys=(key,))
    mismatch = wire.PodAffinityTerm(topology_key=names.HOST, mismatch_label_keys=(key,))
    spread = wire.TopologySpreadConstraint(topology_key=names.HOST, match_label_keys=(key,))
    return [
        wire.PodSpec(topology_spread_constraints=(spread,)),
        wire.PodSpec(affinity=wire.Affinity(pod_affinity=wire.PodAffinity(required=(term,)))),
        wire.PodSpec(
            affinity=wire.Affinity(pod_anti_affinity=wire.PodAffinity(required=(mismatch,)))
        ),
    ]


def test_who_selects_by_its_own_labels_asks_for_what_nobody_else_does() -> None:
    assert all(ownkeys.select(wire.Pod(spec=spec)) for spec in selecting(INDEX))
    assert not any(ownkeys.select(wire.Pod(spec=spec)) for spec in selecting("app"))
    assert not ownkeys.select(pod())
