"""Whether Muster manages a pod: the one decision that webhook and extender share."""

import pytest
from support.pods.wirepods import pod

from muster.workloads.devices.accelerators import load
from muster.workloads.managedpods import ManagedConfig, ManagedPolicy, created_by

POLICY = ManagedPolicy()
GPU = {"nvidia.com/gpu": "8"}


@pytest.mark.parametrize(
    "resource",
    [
        "nvidia.com/gpu",
        "nvidia.com/mig-3g.40gb",
        "amd.com/gpu",
        "amd.com/cpx_nps4",
        "habana.ai/gaudi",
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
        "google.com/tpu",
        "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore",
        "aws.amazon.com/neurondevice",
        "huawei.com/Ascend910",
        "huawei.com/Ascend310P",
        "xilinx.com/fpga-xilinx_u250_gen3x16_xdma_shell_3_1-0",
        "fpga.intel.com/region-ce48969398f05f33946d560708be108a",
    ],
)
def test_a_pod_that_asks_for_an_accelerator_is_managed(resource: str) -> None:
    assert POLICY.is_managed(pod(limits={resource: "1"}), {})


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"cpu": "64", "memory": "1Ti"},
        {"nvidia.com/gpu": "0"},
        {"rdma/hca": "8"},
        {"gpu.intel.com/monitoring": 1},
    ],
)
def test_a_pod_that_asks_for_none_is_not(limits: dict[str, str]) -> None:
    assert not POLICY.is_managed(pod(limits=limits), {})


@pytest.mark.parametrize(
    "labels",
    [
        {"muster.dev/gang": "g"},
        {"scheduling.x-k8s.io/pod-group": "g"},
        {"jobset.sigs.k8s.io/jobset-name": "j"},
    ],
)
def test_a_pod_that_names_its_group_is_managed_without_an_accelerator(
    labels: dict[str, str],
) -> None:
    assert POLICY.is_managed(pod(labels=labels), {})


def test_membership_that_only_the_owner_shows_manages_nothing() -> None:
    labels = {"batch.kubernetes.io/job-completion-index": "0"}
    assert not POLICY.is_managed(pod(labels=labels, owner=("batch/v1", "Job", "j")), {})


def test_excluded_and_opted_out_namespaces_are_left_alone() -> None:
    assert not POLICY.is_managed(pod(namespace="kube-system", limits=GPU), {})
    assert not POLICY.is_managed(pod(limits=GPU), {"muster.dev/managed": "false"})


def test_what_carries_our_gate_or_plan_is_ours_wherever_it_is() -> None:
    gated = pod(namespace="kube-system", gates=("muster.dev/plan",), scheduler="whoever")
    assert POLICY.is_managed(gated, {"muster.dev/managed": "false"})
    assert POLICY.is_managed(pod(annotations={"muster.dev/plan": "{}"}), {})


def test_pods_whose_node_was_never_a_choice_are_left_alone() -> None:
    assert not POLICY.is_managed(pod(limits=GPU, owner=("apps/v1", "DaemonSet", "d")), {})
    mirror = {"kubernetes.io/config.mirror": "x"}
    assert not POLICY.is_managed(pod(limits=GPU, annotations=mirror), {})


def test_a_daemonset_of_another_group_is_no_excuse() -> None:
    assert POLICY.is_managed(pod(limits=GPU, owner=("example.com/v1", "DaemonSet", "d")), {})
    assert POLICY.is_managed(pod(limits=GPU, owner=("appsx/v1", "DaemonSet", "d")), {})


@pytest.mark.parametrize(
    ("user", "managed"),
    [
        ("system:serviceaccount:kube-system:daemon-set-controller", False),
        ("system:kube-controller-manager", False),
        ("system:serviceaccount:team-a:daemon-set-controller", True),
        ("alice", True),
    ],
)
def test_a_daemonset_owns_the_pods_that_its_controller_makes(user: str, *, managed: bool) -> None:
    made = created_by(pod(limits=GPU, owner=("apps/v1", "DaemonSet", "d")), user)
    assert POLICY.is_managed(made, {}) is managed


def test_inject_false_switches_off_injection_and_not_scheduling() -> None:
    assert POLICY.is_managed(pod(limits=GPU, labels={"muster.dev/inject": "false"}), {})


@pytest.mark.parametrize(
    ("scheduler", "managed", "slipped"),
    [
        ("default-scheduler", True, False),
        ("", True, False),
        ("volcano", False, True),
        ("somebody-elses", False, False),
    ],
)
def test_the_scheduler_name_decides_who_can(
    scheduler: str, *, managed: bool, slipped: bool
) -> None:
    wanted = pod(limits=GPU, scheduler=scheduler)
    assert POLICY.is_managed(wanted, {}) is managed
    assert POLICY.slipped_past(wanted, {}) is slipped


def test_a_second_scheduler_leaves_the_default_one_alone() -> None:
    policy = ManagedPolicy.of(ManagedConfig(profile="muster"))
    assert not policy.is_managed(pod(limits=GPU), {})
    assert policy.is_managed(pod(limits=GPU, scheduler="muster"), {})


def test_operators_add_resources_of_their_own() -> None:
    policy = ManagedPolicy.of(ManagedConfig(accelerators=("a.example/npu", "b.example/*")))
    for resource in ("a.example/npu", "b.example/x1", "nvidia.com/gpu"):
        assert policy.is_managed(pod(limits={resource: 1}), {})
    assert not policy.is_managed(pod(limits={"a.example/npu2": 1}), {})


def test_a_name_that_is_kept_and_rewritten_is_refused() -> None:
    with pytest.raises(ValueError, match=r"managed\.rewrite"):
        ManagedPolicy.of(ManagedConfig(profile="volcano"))


def test_the_data_file_names_no_resource_twice() -> None:
    accelerators = load()
    assert not any(name.startswith(accelerators.prefixes) for name in accelerators.resources)
