"""The policies that stand in for the webhook, on a real kube-apiserver of each minor.

::

    pod ──► namespace default ──► MutatingAdmissionPolicy ──► what the API server keeps  ─┐
    pod ──► webhook's own code ──► namespace opted-out ─────► what the API server keeps  ─┴─ equal
"""

import asyncio
import copy
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.injecting import FABRICS, GPU, JSON, facts, gpu_pod, injected

from injection import record
from injection.twin import policies
from injection.twin.unsaid import missing
from kube import names
from loadtest.api import Api, ApiFailed
from loadtest.assets import MINORS, Minor
from loadtest.controlplane import ControlPlane, Options

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

FIRST = {"profile": "generic-roce-hostnet"}
REST = [{"profile": name, "pods": "asking"} for name in FABRICS if name != FIRST["profile"]]
KNOWN = facts(FIRST, *REST, tolerations=[{"key": "pool", "operator": "Equal", "value": "train"}])
LACKING = {source.removeprefix("fabric/") for source, _ in missing(KNOWN)}


def options(minor: Minor) -> Options:
    """Options with mutating policies on: beta and off by default in 1.35 (KEP-3962)."""
    if minor != "1.35":
        return Options(minor=minor)
    return Options(
        minor=minor,
        feature_gates=("MutatingAdmissionPolicy=true",),
        runtime_config=(f"{policies.GROUP}/v1beta1=true",),
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=MINORS)
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Api]:
    minor: Minor = request.param
    made = policies.mutating(KNOWN, "v1beta1" if minor == "1.35" else "v1")
    async with ControlPlane(options(minor)) as plane, plane.api() as api:
        for name, labels in (
            ("opted-out", {names.MANAGED: "false"}),
            ("guarded", {"pod-security.kubernetes.io/enforce": "baseline"}),
        ):
            await api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        for policy in [*made, *policies.validating(KNOWN)]:
            assert isinstance(policy, dict)
            await api.create(_collection(policy), policy)
        async with asyncio.timeout(60):
            while not await _in_force(api):  # noqa: ASYNC110 - nothing to wait on
                await asyncio.sleep(0.2)
        yield api


def _collection(policy: JSON) -> str:
    kind = policy["kind"].lower()
    plural = f"{kind.removesuffix('y')}ies" if kind.endswith("y") else f"{kind}s"
    return f"/apis/{policy['apiVersion']}/{plural}"


async def _in_force(api: Api) -> bool:
    """Return whether the API server has read the policies, which it does with a delay."""
    spec = (await kept(api, member()))["spec"]
    wrong = member({names.FABRIC: "token-ring"})
    try:
        await kept(api, wrong)
    except ApiFailed:
        return "hostNetwork" in spec and any(t.get("key") == "pool" for t in spec["tolerations"])
    return False


def member(
    annotations: JSON | None = None, *, container: JSON | None = None, gpus: int = 8, **spec: object
) -> JSON:
    """A member of a gang of four."""
    pod = gpu_pod(gpus, container=container, **spec)
    pod["metadata"]["labels"] = {names.GANG: "llama"}
    pod["metadata"]["annotations"] = {names.GANG_SIZE: "4", **(annotations or {})}
    return pod


async def kept(api: Api, pod: JSON, namespace: str = "default") -> JSON:
    """The pod as the API server would keep it."""
    made: JSON = await api.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
    meta = made["metadata"]
    notes = {k: v for k, v in meta.get("annotations", {}).items() if k != record.ANNOTATION}
    return {"labels": meta.get("labels"), "annotations": notes, "spec": _by_key(made["spec"])}


def _by_key(spec: JSON) -> JSON:
    """Return the spec with tolerations in one order: policies run by name, rules by their list."""
    ordered = sorted(spec.get("tolerations", []), key=lambda t: sorted(map(str, t.items())))
    return {**spec, "tolerations": ordered}


CASES: dict[str, JSON] = {
    "a plain member": member(),
    "a member of one accelerator": member(gpus=1),
    "a user's variable": member(
        container={"env": [{"name": "NCCL_SOCKET_IFNAME", "value": "bond0"}, {"name": "A"}]}
    ),
    "a user's amount of none": member(
        container={"resources": {"limits": {GPU: "8", "rdma/roce_v2": "0"}}}
    ),
    "a user's network": member({"k8s.v1.cni.cncf.io/networks": "mine,rdma-network@net7"}),
    "another network of the user's": member({"k8s.v1.cni.cncf.io/networks": "mine"}),
    "a user's shared memory": member(
        container={"volumeMounts": [{"name": "v", "mountPath": "/dev/shm/"}]},
        volumes=[{"name": "v", "emptyDir": {}}],
    ),
    "little memory": member(
        container={"resources": {"limits": {GPU: "8", "memory": "8Gi", "cpu": "4"}}}
    ),
    "a dropped capability": member(
        container={"securityContext": {"capabilities": {"drop": ["IPC_LOCK"]}}}
    ),
    "capabilities of the user's": member(
        container={"securityContext": {"capabilities": {"add": ["NET_RAW"]}}}
    ),
    "names of the user's": member(dnsPolicy="None", dnsConfig={"nameservers": ["192.0.2.1"]}),
    "tolerations of everything": member(tolerations=[{"operator": "Exists"}]),
    "a pod alone": gpu_pod(),
    "an opted-out pod": member({names.INJECT: "false"}),
    "a pod that wants no fabric": member({names.FABRIC: "none"}),
    "an init container that asks": member(
        initContainers=[{"name": "warm", "image": "i", "resources": {"limits": {GPU: "1"}}}]
    ),
    "a sidecar that does not ask": member(
        initContainers=[{"name": "log", "image": "i", "restartPolicy": "Always"}]
    ),
    "many variables": member(
        container={"env": [{"name": f"N{i}", "value": "ü"} for i in range(300)]}
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_policy_and_the_webhook_make_the_same_of_a_pod(api: Api, case: str) -> None:
    pod = CASES[case]
    in_gang = names.GANG in pod["metadata"].get("labels", {})
    expected = await kept(api, injected(copy.deepcopy(pod), KNOWN, in_gang=in_gang), "opted-out")
    assert await kept(api, pod) == expected


@pytest.mark.parametrize("fabric", sorted(FABRICS))
@pytest.mark.parametrize("gpus", [1, 4, 8])
async def test_a_pod_that_names_a_fabric_gets_the_same_from_both(
    api: Api, fabric: str, gpus: int
) -> None:
    if fabric in LACKING:
        pytest.skip(f"{fabric} has parts that a policy cannot say, and is told so")
    pod = member({names.FABRIC: fabric}, gpus=gpus)
    assert await kept(api, pod) == await kept(api, injected(copy.deepcopy(pod), KNOWN), "opted-out")


async def test_what_pod_security_forbids_is_left_out(api: Api) -> None:
    spec = (await kept(api, member(), "guarded"))["spec"]
    assert "hostNetwork" not in spec
    assert "securityContext" not in spec["containers"][0]
    assert [e["name"] for e in spec["containers"][0]["env"]] == [
        "NCCL_SOCKET_IFNAME",
        "NCCL_IB_DISABLE",
    ]


@pytest.mark.parametrize("size", ["0", "four", "-1"])
async def test_a_size_that_is_no_number_is_refused_with_field_and_rule(api: Api, size: str) -> None:
    with pytest.raises(ApiFailed, match="gang-size.*must be a number from 1 on"):
        await kept(api, member({names.GANG_SIZE: size}))


async def test_a_fabric_that_is_not_known_is_refused_with_those_that_are(api: Api) -> None:
    with pytest.raises(ApiFailed, match="allowed are none, .*generic-roce-hostnet"):
        await kept(api, member({names.FABRIC: "token-ring"}))
