"""How many: fixed, a share of the node, or what the container says itself."""

from support.injections.injecting import GPU, JSON, facts, gpu_pod, injected, patch, result

from muster.injection.nodegroups import NodeGroup, NodeGroups
from muster.injection.subject import Facts

NIC, NETWORK = "nvidia.com/rdma-vf", "default/rdma-vf"
HOSTDEV = "nvidia.com/hostdev"


def cluster(*groups: tuple[int, int, int]) -> Facts:
    """Nodes as (GPUs, NICs, how many)."""
    live = tuple(NodeGroup({}, {GPU: g, NIC: n, HOSTDEV: n}, count=count) for g, n, count in groups)
    return facts({"profile": "oci-roce-vf"}, nodes=NodeGroups(live, known=True))


def nics(pod: JSON, known: Facts) -> tuple[int, int]:
    """The NICs that the pod asks for, and the interfaces it gets."""
    after = injected(pod, known)
    limits = after["spec"]["containers"][0]["resources"]["limits"]
    text = after["metadata"]["annotations"].get("k8s.v1.cni.cncf.io/networks", "")
    assert patch(result(after, known)) == []
    return int(limits.get(NIC, 0)), text.count("rdma-vf")


def test_a_whole_node_gets_all_its_nics_be_it_four_eight_or_sixteen() -> None:
    for nics_of_node in (4, 8, 16):
        assert nics(gpu_pod(), cluster((8, nics_of_node, 1))) == (nics_of_node, nics_of_node)


def test_a_part_of_the_accelerators_gets_its_part_of_the_nics_rounded_up() -> None:
    assert nics(gpu_pod(4), cluster((8, 16, 1))) == (8, 8)
    assert nics(gpu_pod(1), cluster((8, 4, 1))) == (1, 1)


def test_one_node_that_lost_a_nic_does_not_make_every_pod_small() -> None:
    assert nics(gpu_pod(), cluster((8, 7, 1), (8, 8, 31))) == (8, 8)


def test_among_as_many_nodes_of_each_kind_the_smaller_amount_runs_everywhere() -> None:
    assert nics(gpu_pod(), cluster((8, 16, 4), (8, 8, 4))) == (8, 8)


def test_while_no_live_node_tells_the_profile_does() -> None:
    known = facts({"profile": "oci-roce-vf"})
    assert nics(gpu_pod(), known) == (8, 8)
    assert nics(gpu_pod(2), known) == (2, 2)


def test_interfaces_follow_the_amount_that_the_user_states() -> None:
    pod = gpu_pod(container={"resources": {"limits": {GPU: "8", NIC: "2"}}})
    assert nics(pod, cluster((8, 16, 1))) == (2, 2)


def test_an_amount_that_no_node_has_does_not_become_as_many_interfaces() -> None:
    asked = {"limits": {GPU: "8", NIC: "1000000000"}}
    greedy = gpu_pod(container={"resources": asked})
    assert nics(greedy, cluster((8, 8, 1))) == (1_000_000_000, 128)


def test_a_user_who_says_none_gets_none() -> None:
    pod = gpu_pod(container={"resources": {"limits": {GPU: "8", NIC: "0"}}})
    assert nics(pod, cluster((8, 16, 1))) == (0, 0)


def test_a_network_of_the_pods_own_namespace_is_the_same_with_its_namespace_or_without() -> None:
    pod = gpu_pod()
    pod["metadata"] |= {
        "namespace": "default",
        "annotations": {"k8s.v1.cni.cncf.io/networks": ",".join(["rdma-vf"] * 8)},
    }
    assert nics(pod, cluster((8, 8, 1))) == (8, 8)


def test_what_a_cluster_calls_things_goes_for_amounts_too() -> None:
    choice = {"profile": "nvidia-hostdev", "names": {HOSTDEV: "x.io/nic"}}
    live = NodeGroups((NodeGroup({}, {GPU: 8, "x.io/nic": 4}),), known=True)
    after = injected(gpu_pod(), facts(choice, nodes=live))
    assert after["spec"]["containers"][0]["resources"]["limits"]["x.io/nic"] == "4"
    assert after["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"].count(",") == 3
