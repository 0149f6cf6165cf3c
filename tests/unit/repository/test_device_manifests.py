"""The component of the device plugin, read as files; tests/integration applies and runs it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.machine import quickyaml

from deviceplugin import config
from deviceplugin.allocation.settings import AllocationSettings
from deviceplugin.cdi.writer import STATIC
from deviceplugin.exporter.config import DCGM_PORT
from deviceplugin.health.reports import CONDITION
from deviceplugin.publication.gfd import MODELS
from deviceplugin.wiring import CONTROLLER
from muster.kube.names import DEFAULT_LEVELS, HOST, ZONE

JSON = dict[str, Any]
COMPONENT = Path(__file__).parents[3] / "manifests" / "components" / "device-plugin"
FILE = COMPONENT / "device-plugin-config.yaml"


def documents(name: str) -> Iterator[JSON]:
    yield from filter(None, quickyaml.load_all((COMPONENT / name).read_text(encoding="utf-8")))


def pod() -> JSON:
    [daemon] = documents("daemonset.yaml")
    found: JSON = daemon["spec"]["template"]["spec"]
    return found


def test_the_shipped_configuration_loads_and_publishes_the_levels_that_muster_has() -> None:
    loaded = config.load(FILE)
    assert loaded.publication.levels == tuple(
        level for level in DEFAULT_LEVELS if level not in {ZONE, HOST}
    )


def test_the_pod_mounts_what_the_program_reads_and_writes_and_nothing_else() -> None:
    kubelet = config.KubeletSettings()
    paths = {volume["hostPath"]["path"] for volume in pod()["volumes"] if "hostPath" in volume}
    assert paths == {
        str(kubelet.device_plugins),
        str(kubelet.plugins_registry),
        str(kubelet.pod_resources.parent),
        "/var/run/cdi",
        AllocationSettings().device_info_folder,
        str(STATIC),
    }
    [container] = pod()["containers"]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == paths | {
        "/etc/muster/config"
    }


def test_the_pod_is_root_without_any_capability_and_writes_nowhere_of_its_own() -> None:
    [container] = pod()["containers"]
    assert container["securityContext"] == {
        "runAsUser": 0,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod().keys()


def test_a_new_pod_stands_beside_the_old_one_before_that_goes() -> None:
    [daemon] = documents("daemonset.yaml")
    assert daemon["spec"]["updateStrategy"]["rollingUpdate"] == {
        "maxSurge": 1,
        "maxUnavailable": 0,
    }


def test_the_pages_are_where_dcgms_exporter_has_its_own() -> None:
    [container] = pod()["containers"]
    assert container["ports"] == [{"name": "metrics", "containerPort": DCGM_PORT}]
    assert config.load(FILE).exporter.port == DCGM_PORT


def test_the_policy_names_the_account_that_the_pod_has_and_what_the_code_writes() -> None:
    shipped = list(documents("admission.yaml"))
    policies, bindings = shipped[::2], shipped[1::2]
    account = next(each for each in documents("rbac.yaml") if each["kind"] == "ServiceAccount")
    meta = account["metadata"]
    assert pod()["serviceAccountName"] == meta["name"]
    for policy in policies:
        assert f"system:serviceaccount:{meta['namespace']}:{meta['name']}" in str(policy["spec"])
    nodes, events = (str(policy["spec"]) for policy in policies)
    assert CONDITION in nodes
    assert MODELS in nodes
    assert CONTROLLER in events
    assert [binding["spec"] for binding in bindings] == [
        {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}
        for policy in policies
    ]


def test_every_object_is_in_the_namespace_of_node_programs_or_in_none() -> None:
    for name in ("rbac.yaml", "admission.yaml", "daemonset.yaml"):
        for each in documents(name):
            assert each["metadata"].get("namespace", "muster-nodes") == "muster-nodes"


def test_pod_security_lets_the_pod_in_by_the_namespaces_own_label() -> None:
    [namespace] = [each for each in documents("rbac.yaml") if each["kind"] == "Namespace"]
    labels = namespace["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
    assert labels["muster.dev/managed"] == "false"


def test_cutting_gpus_adds_one_capability_to_the_same_container_and_nothing_else() -> None:
    patch = quickyaml.load((COMPONENT.parent / "device-plugin-mig" / "mig.yaml").read_text())
    [daemon] = documents("daemonset.yaml")
    assert patch["metadata"].items() <= daemon["metadata"].items()
    [patched], [container] = patch["spec"]["template"]["spec"]["containers"], pod()["containers"]
    assert patched["name"] == container["name"]
    assert patched["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    assert patched.keys() == {"name", "env", "securityContext"}
