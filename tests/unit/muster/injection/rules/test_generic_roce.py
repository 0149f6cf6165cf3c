"""The generic RoCE profile: what a pod looks like afterwards, and what of the user's stays."""

import json

from support.injections.injecting import GPU, env, facts, gpu_pod, injected, patch, result

from muster.injection.patching import record

ROCE = facts({"profile": "generic-roce-hostnet"})


def test_a_member_of_a_gang_gets_everything_that_the_fabric_needs() -> None:
    after = injected(gpu_pod(), ROCE)
    spec, main = after["spec"], after["spec"]["containers"][0]
    assert env(after) == {
        "NCCL_SOCKET_IFNAME": "ib0",
        "NCCL_IB_DISABLE": "0",
        "GLOO_SOCKET_IFNAME": "ib0",
    }
    assert main["resources"]["limits"] == {GPU: "8", "rdma/roce_v2": "1"}
    assert main["resources"]["requests"] == {"rdma/roce_v2": "1"}
    assert main["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    assert spec["hostNetwork"] is True
    assert spec["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert spec["volumes"][0]["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Gi"}
    assert after["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] == "rdma-network"


def test_a_pod_alone_needs_no_fabric() -> None:
    assert "hostNetwork" not in injected(gpu_pod(), ROCE, in_gang=False)["spec"]


def test_the_users_value_stays_and_is_recorded() -> None:
    own = [{"name": "NCCL_SOCKET_IFNAME", "value": "bond0"}]
    after = injected(gpu_pod(container={"env": own}), ROCE)
    assert env(after) == {"NCCL_IB_DISABLE": "0", "NCCL_SOCKET_IFNAME": "bond0"}
    ledger = json.loads(after["metadata"]["annotations"][record.ANNOTATION])
    assert list(ledger["kept"]) == ["containers[main].env[NCCL_SOCKET_IFNAME]"]


def test_variables_stand_before_the_users_which_may_refer_to_them() -> None:
    own = [{"name": "BOOT", "value": "$(NCCL_SOCKET_IFNAME)"}]
    assert list(env(injected(gpu_pod(container={"env": own}), ROCE)))[-1] == "BOOT"


def test_debugging_is_only_for_those_who_ask() -> None:
    pod = gpu_pod()
    pod["metadata"]["annotations"] = {"muster.dev/fabric-options": "debug"}
    assert "NCCL_DEBUG" not in env(injected(gpu_pod(), ROCE))
    assert env(injected(pod, ROCE))["NCCL_DEBUG"] == "INFO"


def test_shared_memory_is_at_most_half_of_what_the_pod_may_use() -> None:
    limits = {"limits": {GPU: "8", "memory": "8Gi"}}
    after = injected(gpu_pod(container={"resources": limits}), ROCE)
    assert after["spec"]["volumes"][0]["emptyDir"]["sizeLimit"] == "4096Mi"


def test_a_pod_that_opts_out_is_left_alone() -> None:
    pod = gpu_pod()
    pod["metadata"]["labels"] = {"muster.dev/inject": "false"}
    assert patch(result(pod, ROCE)) == []
