"""What an author hears at admission: warnings, and refusals where a cluster wants them."""

import msgspec
import pytest
from support.injections.injecting import FABRICS, GPU, JSON, env, facts, gpu_pod, injected, result

from muster.injection.nodegroups import NodeGroup, NodeGroups
from muster.injection.podview import PodView
from muster.injection.profiles import catalog
from muster.injection.run import inject
from muster.injection.subject import Gang
from webhook.review.wire import WARNING_CHARS

CHOICE = {"profile": "generic-roce-hostnet"}
ROCE = facts(CHOICE)
NO_ROCE = NodeGroups((NodeGroup({}, {GPU: 8}),), known=True)  # nodes that advertise no RDMA device


def named(fabric: str) -> JSON:
    pod = gpu_pod()
    pod["metadata"]["annotations"] = {"muster.dev/fabric": fabric}
    return pod


def running(*command: str) -> JSON:
    return gpu_pod(container={"command": list(command)})


def test_a_gang_that_no_fabric_fits_is_warned_that_it_would_run_over_tcp() -> None:
    (warning,) = result(gpu_pod(), facts(CHOICE, nodes=NO_ROCE)).warnings
    assert "would run over TCP" in warning
    assert "generic-roce-hostnet" in warning


def test_the_same_is_refused_where_the_cluster_says_so() -> None:
    said = result(gpu_pod(), facts(CHOICE, nodes=NO_ROCE, withoutFabric="deny"))
    assert "would run over TCP" in said.refusals[0]
    assert said.operations == ()


def test_who_says_none_is_believed() -> None:
    assert result(named("none"), facts(CHOICE, nodes=NO_ROCE, withoutFabric="deny")).refusals == ()


def test_a_pod_alone_needs_no_fabric_and_hears_nothing() -> None:
    known = facts(CHOICE, nodes=NO_ROCE, withoutFabric="deny")
    assert result(gpu_pod(), known, in_gang=False).refusals == ()


def test_a_fabric_that_is_not_known_is_refused_with_those_that_are() -> None:
    (refusal,) = result(named("token-ring"), ROCE).refusals
    assert "metadata.annotations[muster.dev/fabric]: 'token-ring'" in refusal
    assert "generic-roce-hostnet" in refusal


def test_hiding_devices_by_hand_is_told() -> None:
    pod = gpu_pod(container={"env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}]})
    assert "hides devices" in result(pod, ROCE).warnings[0]


def test_locking_memory_without_being_root_is_told() -> None:
    context = {"runAsUser": 1000, "capabilities": {"add": ["IPC_LOCK"]}}
    assert "no effect" in result(gpu_pod(container={"securityContext": context}), ROCE).warnings[0]


def test_little_shared_memory_for_a_whole_node_is_told() -> None:
    shm = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}
    assert "8Gi or more" in result(gpu_pod(volumes=[shm]), ROCE).warnings[0]
    assert result(gpu_pod(1, volumes=[shm]), ROCE).warnings == ()


def test_a_pod_that_is_told_of_other_nodes_is_one_of_several_whatever_its_labels_say() -> None:
    pod = running("torchrun", "--nnodes=4")
    (warning,) = result(pod, ROCE, in_gang=False).warnings
    assert "fits this pod, which names no gang (muster.dev/gang)" in warning
    refused = result(pod, facts(CHOICE, withoutFabric="deny"), in_gang=False)
    assert "would run over TCP" in refused.refusals[0]
    assert result(running("torchrun", "--nnodes=1"), ROCE, in_gang=False).warnings == ()


def test_the_size_that_an_object_has_now_is_good_for_a_warning_and_for_nothing_else() -> None:
    view = msgspec.convert(running("torchrun", "--nnodes=8"), PodView)
    told = inject(view, "team-a", ROCE, Gang("job", counts=(4,)))
    assert "--nnodes 8 but the gang has 4 members" in told.warnings[0]
    assert b"WORLD_SIZE" not in msgspec.json.encode(told.operations)


# -- off the fabric without a word -----------------------------------------------------------------


def saying(*variables: tuple[str, str], **container: object) -> JSON:
    env = [{"name": name, "value": value} for name, value in variables]
    return gpu_pod(container={"env": env, **container})


@pytest.mark.parametrize(
    "said", [("NCCL_NET", "Socket"), ("NCCL_NET", "AWS Libfabric"), ("NCCL_IB_DISABLE", "1")]
)
def test_a_variable_that_takes_the_pod_off_its_fabric_is_told(said: tuple[str, str]) -> None:
    (warning,) = result(saying(said), ROCE).warnings
    assert warning.startswith(f"containers[main].env[{said[0]}]: ")
    assert "generic-roce-hostnet is IB: leave it out" in warning


@pytest.mark.parametrize("said", [("NCCL_NET", "IB"), ("NCCL_IB_DISABLE", "0")])
def test_one_that_agrees_with_the_fabric_is_not(said: tuple[str, str]) -> None:
    assert result(saying(said), ROCE).warnings == ()


def test_over_tcp_on_purpose_nothing_is_told() -> None:
    tcp = facts({"profile": "plain-tcp"})
    assert result(saying(("NCCL_IB_DISABLE", "1")), tcp).warnings == ()


def test_a_strict_cluster_lets_nccl_fail_rather_than_fall_back() -> None:
    assert env(injected(gpu_pod(), facts({**CHOICE, "strict": True})))["NCCL_NET"] == "IB"
    assert "NCCL_NET" not in env(injected(gpu_pod(), ROCE))


def test_strictness_about_a_fabric_whose_network_has_no_name_is_refused() -> None:
    known = facts({"profile": "aws-efa", "strict": True})
    (problem,) = catalog.unknown_fabrics(known.cluster, FABRICS)
    assert "spec.fabrics[0].strict: aws-efa has no net" in problem


# -- variables that nobody here can see ------------------------------------------------------------


def test_variables_from_a_config_map_that_may_lose_are_told_by_name() -> None:
    (warning,) = result(saying(envFrom=[{"configMapRef": {"name": "nccl"}}]), ROCE).warnings
    assert warning.startswith("containers[main].envFrom: what it says of NCCL_SOCKET_IFNAME, ")
    assert "loses against fabric/generic-roce-hostnet: what is meant stands in env" in warning


def test_with_a_prefix_that_none_of_ours_has_nothing_can_be_lost() -> None:
    prefixed = [{"prefix": "APP_", "secretRef": {"name": "app"}}]
    assert result(saying(envFrom=prefixed), ROCE).warnings == ()


def test_settings_in_a_file_lose_against_the_users_and_so_hide_nothing() -> None:
    from_map = saying(envFrom=[{"configMapRef": {"name": "nccl"}, "prefix": "NCCL_"}])
    assert result(from_map, facts({**CHOICE, "channel": "file"})).warnings == ()


# -- words of yesterday ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("NCCL_MIN_NRINGS", "NCCL_MIN_NCHANNELS"),
        ("NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING"),
    ],
)
def test_a_variable_that_is_gone_is_told_with_what_came_in_its_place(old: str, new: str) -> None:
    (warning,) = result(saying((old, "1")), ROCE).warnings
    assert warning.startswith(f"containers[main].env[{old}]: ")
    assert warning.endswith(new)


def test_the_old_launcher_is_told() -> None:
    (warning,) = result(running("python", "-m", "torch.distributed.launch", "t.py"), ROCE).warnings
    assert warning == "containers[main]: torch.distributed.launch is deprecated: torchrun"


def test_every_warning_is_short_enough_for_the_api_server() -> None:
    pod = saying(
        ("NCCL_NET", "Socket"), ("NCCL_MIN_NRINGS", "1"), ("CUDA_VISIBLE_DEVICES", "0"),
        envFrom=[{"configMapRef": {"name": "n"}}], args=["--nnodes=3", "${MASTER_ADDR}"],
    )  # fmt: skip
    warnings = result(pod, ROCE, size=4).warnings
    assert len(warnings) == 6
    assert max(map(len, warnings)) < WARNING_CHARS
