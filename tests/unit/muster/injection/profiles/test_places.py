"""Tier, spot capacity, taints, data sets and classes: what a pod asks for in words."""

import re

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.injections.injecting import GPU, JSON, facts, gpu_pod, injected, patch, result

from muster.injection.nodegroups import NodeGroup, NodeGroups
from muster.kube.wire import Taint

NOTHING_SAID = facts()


def asking(pod: JSON | None = None, **annotations: str) -> JSON:
    pod = pod or gpu_pod()
    keys = {f"muster.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    pod["metadata"]["annotations"] = keys
    return pod


def live(labels: dict[str, str], *taints: Taint) -> NodeGroups:
    return NodeGroups((NodeGroup(labels, {GPU: 8}, taints),), known=True)


@pytest.mark.parametrize(
    ("said", "tier"),
    [
        ({"workload": "pre-training"}, "high-performance"),
        ({"workload": "fine-tuning"}, "standard"),
        ({"workload": "inference"}, "inference"),
        ({"workload": "inference", "gpu_tier": "standard"}, "standard"),
    ],
)
def test_the_kind_of_work_names_the_tier_and_the_tier_itself_comes_first(
    said: dict[str, str], tier: str
) -> None:
    assert injected(asking(**said), NOTHING_SAID)["spec"]["nodeSelector"] == {"gpu-tier": tier}


def test_a_selector_of_the_users_stays() -> None:
    pod = asking(
        gpu_pod(nodeSelector={"gpu-type": "h100", "gpu-tier": "mine"}), workload="inference"
    )
    selector = injected(pod, NOTHING_SAID)["spec"]["nodeSelector"]
    assert selector == {"gpu-type": "h100", "gpu-tier": "mine"}


def test_a_tier_that_no_live_node_has_is_told_and_not_added() -> None:
    known = facts(nodes=live({"gpu-tier": "inference"}))
    said = result(asking(workload="pre-training"), known)
    assert "no node has gpu-tier=high-performance" in said.warnings[0]
    assert "nodeSelector" not in injected(asking(workload="pre-training"), known)["spec"]


def test_a_word_that_is_no_tier_is_told_with_those_there_are() -> None:
    (warning,) = result(asking(gpu_tier="fast"), NOTHING_SAID).warnings
    assert "allowed are high-performance, inference, standard" in warning


def test_accelerator_taints_are_tolerated_and_no_others() -> None:
    taints = (
        Taint(key="gpu-node", value="true", effect="NoSchedule"),
        Taint(key="team", value="search", effect="NoSchedule"),
    )
    after = injected(gpu_pod(), facts(nodes=live({}, *taints)))
    assert [t["key"] for t in after["spec"]["tolerations"]] == ["gpu-node"]


def test_a_pod_without_accelerators_tolerates_nothing_new() -> None:
    assert patch(result(gpu_pod(0), NOTHING_SAID)) == []


def test_spot_is_the_clouds_of_the_live_nodes() -> None:
    known = facts(nodes=live({"kubernetes.azure.com/scalesetpriority": "spot"}))
    spec = injected(asking(capacity="spot"), known)["spec"]
    assert spec["nodeSelector"] == {"kubernetes.azure.com/scalesetpriority": "spot"}
    assert spec["tolerations"][0]["value"] == "spot"


def test_spot_where_nothing_is_marked_says_so() -> None:
    (warning,) = result(asking(capacity="spot"), NOTHING_SAID).warnings
    assert "spec.spot" in warning


def test_a_bucket_is_mounted_and_the_clouds_own_webhook_is_told() -> None:
    after = injected(asking(dataset_imagenet="gs://imagenet/train:/data:ro"), NOTHING_SAID)
    (volume,) = after["spec"]["volumes"]
    assert volume["csi"]["driver"] == "gcsfuse.csi.storage.gke.io"
    assert volume["csi"]["volumeAttributes"]["mountOptions"] == "implicit-dirs,only-dir=train"
    assert after["metadata"]["annotations"]["gke-gcsfuse/volumes"] == "true"
    (mount,) = after["spec"]["containers"][0]["volumeMounts"]
    assert mount == {"name": "dataset-imagenet", "mountPath": "/data", "readOnly": True}


def test_a_directory_of_a_claim_is_mounted() -> None:
    after = injected(asking(dataset_c4="pvc://corpus/c4:/data"), NOTHING_SAID)
    assert after["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "corpus"}
    assert after["spec"]["containers"][0]["volumeMounts"][0]["subPath"] == "c4"


def test_a_data_set_that_cannot_be_read_is_told_with_the_form() -> None:
    (warning,) = result(asking(dataset_c4="s3://corpus"), NOTHING_SAID).warnings
    assert "s3://corpus" in warning
    assert "pvc://CLAIM" in warning


@pytest.mark.parametrize("text", ["pvc://corpus/../x:/data", "pvc://corpus//x:/data"])
def test_a_directory_outside_of_its_claim_is_told_and_not_mounted(text: str) -> None:
    """The API server would refuse the pod (core/v1 VolumeMount: subPath)."""
    said = result(asking(dataset_c4=text), NOTHING_SAID)
    assert "pvc://CLAIM" in said.warnings[0]
    assert not any("dataset" in source for source in said.record.set)


@given(directory=st.text(min_size=1))
@example(directory="x,uid=0")
@example(directory="x\u0000,o=allow_other")
def test_a_directory_of_a_bucket_never_becomes_two_mount_options(directory: str) -> None:
    said = result(asking(dataset_c4=f"gs://b/{directory}:/d"), NOTHING_SAID)
    volumes = [entry["value"] for entry in patch(said) if entry["path"].startswith("/spec/volumes")]
    options = re.findall(r'"mountOptions":"([^"]*)"', msgspec.json.encode(volumes).decode())
    assert len(options) + len(said.warnings) == 1
    assert all(text.count(",") <= 1 for text in options)


def test_a_data_set_whose_name_no_volume_can_have_is_told() -> None:
    pod = gpu_pod()
    pod["metadata"]["annotations"] = {"muster.dev/dataset-My_Data": "pvc://corpus:/data"}
    said = result(pod, NOTHING_SAID)
    assert said.warnings[0].startswith("muster.dev/dataset-My_Data: 'My_Data' names a volume")
    assert not any("dataset" in source for source in said.record.set)


def test_a_namespace_gives_its_classes_to_those_that_name_none() -> None:
    known = facts(namespaces={"team-a": {"runtimeClass": "nvidia", "priorityClass": "research"}})
    spec = injected(gpu_pod(priorityClassName="urgent"), known)["spec"]
    assert spec["runtimeClassName"] == "nvidia"
    assert spec["priorityClassName"] == "urgent"


def test_the_data_says_where_it_comes_from() -> None:
    places = NOTHING_SAID.places
    assert all(each.source for each in (*places.spot.values(), *places.taints))
    assert set(places.tiers.workloads.values()) <= set(places.tiers.tiers)
    assert msgspec.json.encode(places.tiers)


def test_a_taint_of_another_vendor_is_not_tolerated() -> None:
    keys = {t["key"] for t in injected(gpu_pod(), NOTHING_SAID)["spec"]["tolerations"]}
    assert GPU in keys
    assert "amd.com/gpu" not in keys


def test_a_class_that_is_given_lets_the_api_server_compute_the_priority_anew() -> None:
    known = facts(namespaces={"team-a": {"priorityClass": "research"}})
    spec = injected(gpu_pod(priority=0, preemptionPolicy="PreemptLowerPriority"), known)["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (None, None)
