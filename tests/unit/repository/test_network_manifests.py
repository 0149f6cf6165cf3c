"""The component of isolated networks, read as files; tests/integration applies it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.machine import quickyaml

from muster.kube.kinds.jobnetworks import (
    NETWORKS,
    NODE_NETWORKS,
    POOLS,
    JobNetworkSpec,
    NodeNetworkStatus,
    Peer,
    PoolCondition,
    VniPoolSpec,
    VniPoolStatus,
    VniRange,
)
from muster.vni.pools import FIRST, LAST, LAST_FEDERATED, SMALLEST_MTU
from muster.vniagent.config import AgentConfig

JSON = dict[str, Any]
COMPONENT = Path(__file__).parents[3] / "manifests" / "components" / "job-networks"


def documents(name: str) -> Iterator[JSON]:
    yield from filter(None, quickyaml.load_all((COMPONENT / name).read_text(encoding="utf-8")))


KINDS = {kind["spec"]["names"]["kind"]: kind for kind in documents("crds.yaml")}
POOL, NETWORK, NODE = "VNIPool", "JobNetwork", "NodeNetwork"


def schema(kind: str, *path: str) -> JSON:
    """Return the schema of a field; a list is looked through to its items."""
    [version] = KINDS[kind]["spec"]["versions"]
    found: JSON = version["schema"]["openAPIV3Schema"]
    for name in path:
        found = found["properties"][name]
        found = found.get("items", found)
    return found


@pytest.mark.parametrize(
    ("kind", "path", "struct"),
    [
        (POOL, ("spec",), VniPoolSpec),
        (POOL, ("spec", "range"), VniRange),
        (POOL, ("spec", "federation"), VniRange),
        (POOL, ("status",), VniPoolStatus),
        (POOL, ("status", "conditions"), PoolCondition),
        (NETWORK, ("spec",), JobNetworkSpec),
        (NETWORK, ("spec", "nodes"), Peer),
        (NODE, ("status",), NodeNetworkStatus),
    ],
)
def test_the_definitions_have_the_fields_that_the_code_reads_and_writes_and_no_others(
    kind: str, path: tuple[str, ...], struct: type[msgspec.Struct]
) -> None:
    """A field that a definition lacks would be cut off by the API server, silently."""
    fields = {field.encode_name for field in msgspec.structs.fields(struct)}
    assert set(schema(kind, *path)["properties"]) == fields


def test_the_resources_are_those_of_the_definitions() -> None:
    for kind, resource in ((POOL, POOLS), (NETWORK, NETWORKS), (NODE, NODE_NETWORKS)):
        spec = KINDS[kind]["spec"]
        [version] = spec["versions"]
        assert spec["names"]["plural"] == resource.plural
        assert (spec["group"], version["name"]) == (resource.group, resource.version)
        assert (spec["scope"] == "Namespaced") == resource.namespaced


def test_the_api_server_refuses_the_numbers_that_the_code_refuses() -> None:
    for field, last in (("range", LAST), ("federation", LAST_FEDERATED)):
        for end in ("first", "last"):
            found = schema(POOL, "spec", field, end)
            assert (found["minimum"], found["maximum"]) == (FIRST, last)
    assert schema(POOL, "spec", "mtu")["minimum"] == SMALLEST_MTU
    vni = schema(NETWORK, "spec", "vni")
    assert (vni["minimum"], vni["maximum"]) == (FIRST, LAST)


def test_the_agent_runs_on_every_node_as_a_part_of_it() -> None:
    [daemon] = [each for each in documents("agent.yaml") if each["kind"] == "DaemonSet"]
    spec = daemon["spec"]["template"]["spec"]
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["priorityClassName"] == "system-node-critical"
    assert "nodeSelector" not in spec
    [container] = spec["containers"]
    fields = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"]}
    assert fields == {"NODE_NAME": "spec.nodeName", "HOST_IP": "status.hostIP"}


def test_the_shipped_configuration_of_the_agent_says_what_holds_without_it() -> None:
    text = (COMPONENT / "agent-config.yaml").read_text(encoding="utf-8")
    assert msgspec.yaml.decode(text, type=AgentConfig) == AgentConfig()


def test_the_policies_name_the_accounts_that_there_are() -> None:
    """A name that nobody has would let everybody in, or keep the extender out."""
    rbac = COMPONENT.parents[1] / "rbac" / "muster.yaml"
    made = [*quickyaml.load_all(rbac.read_text(encoding="utf-8")), *documents("agent.yaml")]
    accounts = {
        f"system:serviceaccount:{each['metadata']['namespace']}:{each['metadata']['name']}"
        for each in made
        if each["kind"] == "ServiceAccount"
    }
    policies = [each for each in documents("admission.yaml") if "matchConditions" in each["spec"]]
    named = {
        word.strip('"')
        for policy in policies
        for condition in policy["spec"]["matchConditions"]
        for word in condition["expression"].split()
        if "serviceaccount" in word
    }
    kubernetes = "system:serviceaccount:kube-system:namespace-controller"
    assert named - {kubernetes} <= accounts
    assert {policy["spec"]["failurePolicy"] for policy in policies} == {"Fail"}
    bound = [each["spec"] for each in documents("admission.yaml") if "policyName" in each["spec"]]
    assert {each["policyName"] for each in bound} == {each["metadata"]["name"] for each in policies}
    assert all(each["validationActions"] == ["Deny"] for each in bound)


def test_the_reader_reads_all_three_kinds_and_changes_nothing() -> None:
    [role] = documents("reader.yaml")
    [rule] = role["rules"]
    assert set(rule["resources"]) == {each["spec"]["names"]["plural"] for each in KINDS.values()}
    assert set(rule["verbs"]) == {"get", "list", "watch"}


def test_everything_of_the_component_is_listed_but_the_pool_which_is_the_operators() -> None:
    [top] = documents("kustomization.yaml")
    files = {path.name for path in COMPONENT.glob("*.yaml")}
    assert files - set(top["resources"]) == {"kustomization.yaml", "agent-config.yaml", "pool.yaml"}
