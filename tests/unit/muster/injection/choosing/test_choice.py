"""Which fabric a pod gets, in clusters of several.

Two pools, two fabrics::

    pool   accelerator              advertises        fabric
    mega   nvidia-h100-mega-80gb    8 GPUs            gke-tcpxo (interfaces, nothing to ask for)
    ultra  nvidia-h200-141gb        8 GPUs            gke-gib
    cheap  (none of these)          4 GPUs            plain-tcp
"""

from dataclasses import replace

from support.injections.injecting import (
    FABRICS,
    GPU,
    JSON,
    env,
    facts,
    gpu_pod,
    injected,
    patch,
    result,
)

from muster.injection.choosing.choice import node_label_keys
from muster.injection.nodegroups import NodeGroup, NodeGroups
from muster.injection.subject import Facts

ACCELERATOR = "cloud.google.com/gke-accelerator"
POOL = "cloud.google.com/gke-nodepool"
MEGA = NodeGroup({ACCELERATOR: "nvidia-h100-mega-80gb", POOL: "mega"}, {GPU: 8}, count=16)
ULTRA = NodeGroup({ACCELERATOR: "nvidia-h200-141gb", POOL: "ultra"}, {GPU: 8}, count=16)
CHEAP = NodeGroup({POOL: "cheap"}, {GPU: 4}, count=16)
CHOICES = ({"profile": "gke-tcpxo"}, {"profile": "gke-gib"}, {"profile": "plain-tcp"})


def live(*groups: NodeGroup) -> NodeGroups:
    return NodeGroups(groups, known=True)


BOTH = facts(*CHOICES, nodes=live(MEGA, ULTRA, CHEAP))


def fabric_of(pod: JSON, known: Facts = BOTH, *, in_gang: bool = True, namespace: str = "a") -> str:
    """The fabric in the ledger, "" for none."""
    found = result(pod, known, in_gang=in_gang, namespace=namespace).record.set
    names = {s.removeprefix("fabric/").partition("@")[0] for s in found if s.startswith("fabric/")}
    assert len(names) <= 1
    return next(iter(names), "")


def annotated(pod: JSON, **notes: str) -> JSON:
    pod["metadata"]["annotations"] = {
        f"muster.dev/{k.replace('_', '-')}": v for k, v in notes.items()
    }
    return pod


def required(key: str, operator: str, *values: str) -> JSON:
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def test_the_first_choice_that_fits_is_taken() -> None:
    assert fabric_of(gpu_pod()) == "gke-tcpxo"


def test_the_node_selector_decides_between_two_pools() -> None:
    assert fabric_of(gpu_pod(nodeSelector={ACCELERATOR: "nvidia-h200-141gb"})) == "gke-gib"


def test_a_required_node_affinity_decides_as_a_node_selector_does() -> None:
    ultra = required(ACCELERATOR, "In", "nvidia-h200-141gb")
    not_mega = required(ACCELERATOR, "NotIn", "nvidia-h100-mega-80gb")
    assert fabric_of(gpu_pod(affinity=ultra)) == "gke-gib"
    assert fabric_of(gpu_pod(affinity=not_mega)) == "gke-gib"


def test_a_selector_by_another_label_of_the_pool_leads_to_its_fabric() -> None:
    assert fabric_of(gpu_pod(nodeSelector={POOL: "ultra"})) == "gke-gib"


def test_a_pod_in_a_cluster_of_several_fabrics_is_kept_on_the_nodes_of_its_own() -> None:
    after = injected(gpu_pod(), BOTH)
    assert after["spec"]["nodeSelector"] == {ACCELERATOR: "nvidia-h100-mega-80gb"}
    assert patch(result(after, BOTH)) == []


def test_where_there_is_one_fabric_nobody_is_pinned() -> None:
    known = facts({"profile": "gke-tcpxo"}, nodes=live(MEGA))
    assert "nodeSelector" not in injected(gpu_pod(), known)["spec"]


def test_a_pod_that_asks_for_too_little_of_a_node_gets_the_fabric_that_can_be_shared() -> None:
    assert fabric_of(gpu_pod(4)) == "plain-tcp"


def test_a_pool_that_is_scaled_to_nothing_is_passed_over() -> None:
    assert fabric_of(gpu_pod(), facts(*CHOICES, nodes=live(ULTRA))) == "gke-gib"


def test_a_pool_that_is_scaled_to_nothing_is_had_by_naming_it() -> None:
    known = facts(*CHOICES, nodes=live(ULTRA))
    mega = gpu_pod(nodeSelector={ACCELERATOR: "nvidia-h100-mega-80gb"})
    assert fabric_of(mega, known) == "gke-tcpxo"


def test_nodes_that_do_not_advertise_the_resource_are_not_of_the_fabric() -> None:
    broken = NodeGroup({}, {GPU: 8, "rdma/ib": 0})
    known = facts({"profile": "coreweave-ib"}, nodes=live(broken))
    assert fabric_of(gpu_pod(), known) == ""


def test_where_nobody_has_looked_at_nodes_everything_is_possible() -> None:
    assert fabric_of(gpu_pod(), facts({"profile": "coreweave-ib"})) == "coreweave-ib"


def test_a_choice_may_be_for_namespaces_by_name_or_by_label() -> None:
    choices = (
        {"profile": "coreweave-ib", "namespaces": ["research"]},
        {"profile": "plain-tcp", "namespaceLabels": {"tier": "batch", "team": ""}},
    )
    labels = {"b": {"tier": "batch", "team": "x"}, "c": {"tier": "batch"}}
    known = replace(facts(*choices), namespaces=labels)
    assert fabric_of(gpu_pod(), known, namespace="research") == "coreweave-ib"
    assert fabric_of(gpu_pod(), known, namespace="b") == "plain-tcp"
    assert fabric_of(gpu_pod(), known, namespace="c") == ""


def test_a_choice_may_be_for_pods_alone_or_only_for_those_that_ask() -> None:
    alone = facts({"profile": "plain-tcp", "pods": "accelerated"})
    asking = facts({"profile": "plain-tcp", "pods": "asking"})
    assert fabric_of(gpu_pod(), alone, in_gang=False) == "plain-tcp"
    assert fabric_of(gpu_pod(), asking) == ""
    assert fabric_of(annotated(gpu_pod(), fabric="plain-tcp"), asking) == "plain-tcp"


def test_a_pod_without_accelerators_gets_no_fabric() -> None:
    assert fabric_of({"metadata": {}, "spec": {"containers": [{"name": "cpu"}]}}) == ""


def test_the_annotation_names_a_fabric_or_none() -> None:
    assert fabric_of(annotated(gpu_pod(), fabric="gke-gib")) == "gke-gib"
    assert fabric_of(annotated(gpu_pod(), fabric="none")) == ""


def test_a_name_that_nobody_knows_injects_nothing() -> None:
    assert fabric_of(annotated(gpu_pod(), fabric="infiniband")) == ""


def test_a_named_fabric_keeps_what_the_cluster_says_about_it() -> None:
    choice = {"profile": "gke-tcpxo", "version": "v1.0.12", "pods": "asking"}
    after = injected(annotated(gpu_pod(), fabric="gke-tcpxo"), facts(choice))
    assert after["spec"]["initContainers"][0]["image"].endswith(":v1.0.18")


def test_a_pod_that_another_choice_seems_to_fit_after_its_injection_keeps_its_own() -> None:
    """The pin of the second choice is all that the first one asks for."""
    first = {"profile": "coreweave-ib", "nodeLabels": {"gpu": "h100"}}
    second = {"profile": "plain-tcp", "nodeLabels": {"gpu": "h100", "pool": "x"}}
    known = facts(first, second, nodes=live(NodeGroup({"gpu": "h100", "pool": "x"}, {GPU: 8})))
    after = injected(gpu_pod(), known)
    assert fabric_of(gpu_pod(), known) == "plain-tcp"
    assert patch(result(after, known)) == []


def test_what_the_vendor_forbids_beside_a_fabric_keeps_it_away() -> None:
    limits = {GPU: "1", "vke.volcengine.com/mgpu-core": "30"}
    pod = gpu_pod(container={"resources": {"limits": limits}})
    assert fabric_of(pod, facts({"profile": "volcengine-rdma"})) == ""


def test_settings_of_one_kind_of_node_need_nodes_of_that_kind_only() -> None:
    shape = "node.kubernetes.io/instance-type"
    h100, h200 = (NodeGroup({shape: f"BM.GPU.{kind}.8"}, {GPU: 8}) for kind in ("H100", "H200"))
    choice = {"profile": "oci-roce-hostnet"}
    one = env(injected(gpu_pod(), facts(choice, nodes=live(h100))))
    two = env(injected(gpu_pod(), facts(choice, nodes=live(h100, h200))))
    assert one["NCCL_IB_HCA"].startswith("=mlx5_0,mlx5_1,mlx5_3")
    assert "NCCL_IB_HCA" not in two
    assert two["NCCL_IB_TC"] == "41"


def test_a_watcher_is_told_which_labels_matter() -> None:
    keys = node_label_keys(
        facts({"profile": "plain-tcp", "nodeLabels": {"x": ""}}).cluster, FABRICS
    )
    assert {"x", ACCELERATOR, "node.kubernetes.io/instance-type"} <= keys
