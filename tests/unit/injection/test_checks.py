"""What an author hears at admission: warnings, and refusals where a cluster wants them."""

import pytest
from support.injecting import GPU, JSON, facts, gpu_pod, result

from injection.nodes import NodeGroup, Nodes

CHOICE = {"profile": "generic-roce-hostnet"}
ROCE = facts(CHOICE)
NO_ROCE = Nodes((NodeGroup({}, {GPU: 8}),), known=True)  # nodes that advertise no RDMA device


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


def test_braces_that_nobody_expands_are_told_with_what_to_write() -> None:
    (warning,) = result(running("torchrun", "--rdzv=${MASTER_ADDR}:1"), ROCE).warnings
    assert "write $(MASTER_ADDR)" in warning


def test_a_shell_expands_them_itself() -> None:
    assert result(running("/bin/bash", "-c", "echo ${HOME}"), ROCE).warnings == ()


@pytest.mark.parametrize("words", [("--nnodes=8",), ("--nnodes", "8"), ("--nnodes=2:8",)])
def test_nnodes_that_is_not_the_gangs_size_is_told(words: tuple[str, ...]) -> None:
    (warning,) = result(running("torchrun", *words), ROCE, size=16).warnings
    assert "--nnodes 8 but the gang has 16 members" in warning


def test_nnodes_of_the_right_size_or_unknown_size_is_fine() -> None:
    assert result(running("torchrun", "--nnodes=8"), ROCE, size=8).warnings == ()
    assert result(running("torchrun", "--nnodes=8"), ROCE).warnings == ()


def test_nnodes_of_more_digits_than_a_number_has_is_no_defect_of_ours() -> None:
    said = result(running("torchrun", "--nnodes=" + "9" * 5000), ROCE, size=4)
    assert not any("nnodes" in warning for warning in said.warnings)


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
