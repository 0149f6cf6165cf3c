"""What a cluster makes of a profile: versions, names, words of its own, NCCL's file."""

import json

from support.injections.injecting import GPU, JSON, env, facts, gpu_pod, injected, patch, result

from muster.injection.patching import record
from muster.injection.rules import ncclconf

CONF = "muster.dev/nccl-conf"


def mounts(pod: JSON) -> dict[str, JSON]:
    return {m["mountPath"]: m for m in pod["spec"]["containers"][0].get("volumeMounts", [])}


def test_the_clusters_own_words_win_over_the_profiles() -> None:
    own = {"env": {"NCCL_SOCKET_IFNAME": "bond0", "MINE": "1"}, "sharedMemory": "4Gi"}
    after = injected(gpu_pod(), facts({"profile": "plain-tcp", "inject": own}))
    assert env(after)["NCCL_SOCKET_IFNAME"] == "bond0"
    assert env(after)["MINE"] == "1"
    assert after["spec"]["volumes"][0]["emptyDir"]["sizeLimit"] == "4Gi"


def test_a_network_object_of_another_name_is_said_once_in_the_choice() -> None:
    interfaces = '[{"interfaceName":"eth0","network":"default"}]'
    own = {"annotations": {"networking.gke.io/interfaces": interfaces}}
    after = injected(gpu_pod(), facts({"profile": "gke-tcpxo", "inject": own}))
    assert after["metadata"]["annotations"]["networking.gke.io/interfaces"] == interfaces


def test_the_image_of_the_daemon_changes_with_the_environment_it_belongs_to() -> None:
    def version(name: str) -> tuple[str, bool]:
        after = injected(gpu_pod(), facts({"profile": "gke-tcpxo", "version": name}))
        image = after["spec"]["initContainers"][0]["image"]
        return image.rpartition(":")[2], "NCCL_NVLSTREE_MAX_CHUNKSIZE" in env(after)

    assert version("") == ("v1.0.21", True)
    assert version("v1.0.11") == ("v1.0.17", False)


def test_gloo_does_not_follow_nccl_where_the_user_has_decided_for_nccl() -> None:
    own = [{"name": "NCCL_SOCKET_IFNAME", "value": "bond0"}]
    after = injected(gpu_pod(container={"env": own}), facts({"profile": "plain-tcp"}))
    assert "GLOO_SOCKET_IFNAME" not in env(after)


def test_a_search_path_without_the_fabrics_directory_is_kept_and_told() -> None:
    path = "LD_LIBRARY_PATH"
    own = gpu_pod(container={"env": [{"name": path, "value": "/opt/lib"}]})
    good = gpu_pod(container={"env": [{"name": path, "value": "/opt:/usr/local/nvidia/lib64"}]})
    known = facts({"profile": "gke-tcpxo"})
    assert env(injected(own, known))[path] == "/opt/lib"
    (warning,) = result(own, known).warnings
    assert warning.startswith("container main: LD_LIBRARY_PATH lacks /usr/local/nvidia/lib64")
    assert result(good, known).warnings == ()


def test_nccls_settings_can_go_into_a_file_that_variables_win_over() -> None:
    known = facts({"profile": "coreweave-ib", "channel": "file"})
    after = injected(gpu_pod(), known)
    text = after["metadata"]["annotations"][CONF]
    assert text.splitlines()[:2] == ["NCCL_SOCKET_IFNAME=eth0", "NCCL_IB_HCA=ibp"]
    assert env(after).keys() == {
        "UCX_TLS",
        "UCX_NET_DEVICES",
        "OMPI_MCA_coll_hcoll_enable",
        "GLOO_SOCKET_IFNAME",
    }
    assert mounts(after)["/etc/nccl.conf"]["subPath"] == "nccl.conf"
    volume = next(v for v in after["spec"]["volumes"] if v["name"] == ncclconf.VOLUME)
    field = {"fieldPath": "metadata.annotations['muster.dev/nccl-conf']"}
    assert volume["downwardAPI"]["items"] == [{"path": "nccl.conf", "fieldRef": field}]
    assert patch(result(after, known)) == []


def test_without_settings_for_nccl_there_is_no_file() -> None:
    after = injected(gpu_pod(), facts({"profile": "alibaba-lingjun", "channel": "file"}))
    assert CONF not in after["metadata"]["annotations"]
    assert "/etc/nccl.conf" not in mounts(after)


def test_a_path_that_the_user_mounts_is_the_users_and_brings_no_idle_volume() -> None:
    own = [{"name": "mine", "mountPath": "/dev/infiniband/"}]
    pod = gpu_pod(container={"volumeMounts": own}, volumes=[{"name": "mine", "emptyDir": {}}])
    after = injected(pod, facts({"profile": "oci-roce-vf"}))
    assert {v["name"] for v in after["spec"]["volumes"]} == {"mine", "muster-shm"}
    ledger = json.loads(after["metadata"]["annotations"][record.ANNOTATION])
    assert "volumes[muster-infiniband]" not in json.dumps(ledger)


def test_containers_without_accelerators_stay_as_they_are() -> None:
    pod = gpu_pod()
    side = {"name": "side", "image": "x"}
    pod["spec"]["containers"].append(side)
    assert injected(pod, facts({"profile": "gke-tcpxo"}))["spec"]["containers"][1] == side


def test_the_networks_are_those_of_the_container_with_the_most_accelerators() -> None:
    pod = gpu_pod(2)
    limits = {"limits": {GPU: "4"}}
    pod["spec"]["containers"].append({"name": "big", "image": "x", "resources": limits})
    after = injected(pod, facts({"profile": "oci-roce-vf"}))
    assert after["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"].count("rdma-vf") == 4


def test_a_claim_that_the_pod_has_already_is_the_pods() -> None:
    pod = gpu_pod(resourceClaims=[{"name": "rdma", "resourceClaimName": "mine"}])
    after = injected(pod, facts({"profile": "gke-gib-dra"}))
    assert after["spec"]["resourceClaims"] == [{"name": "rdma", "resourceClaimName": "mine"}]
    assert after["spec"]["containers"][0]["resources"]["claims"] == [{"name": "rdma"}]
