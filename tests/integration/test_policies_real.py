"""The policies that stand in for the webhook, on a real kube-apiserver of each minor.

::

    pod ──► policies ──────► what the API server keeps  ─┐
    pod ──► webhook's code ► what the API server keeps  ─┴─ differ in what injection.twin.unsaid names
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio
from support.fabricgoldens import Case, cases
from support.injecting import FABRICS, GPU, JSON, facts, gpu_pod
from support.twins import (
    OPTED_OUT,
    Refused,
    add_namespace,
    both_ways,
    differing,
    in_force,
    in_gang,
    install,
    kept,
    options,
)

from injection.subject import Facts
from injection.twin.unsaid import DIFFERENCES, missing
from kube import names
from loadtest.api import Api
from loadtest.assets import MINORS, Minor
from loadtest.controlplane import ControlPlane

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

FIRST = {"profile": "generic-roce-hostnet"}
REST = [{"profile": name, "pods": "asking"} for name in FABRICS if name != FIRST["profile"]]
POOL = [{"key": "pool", "operator": "Equal", "value": "train"}]
KNOWN = facts(FIRST, *REST, tolerations=POOL)
LACKING = {source.removeprefix("fabric/") for source, _ in missing(KNOWN)}
GOLDEN = cases()
BIG, GUARDED = "big", "guarded"


@dataclass
class Plane:
    """An API server with the policies of every cluster; golden case i has namespace case-i."""

    api: Api

    async def differences(self, pod: JSON, known: Facts, namespace: str) -> list[str]:
        """The fields in which policies and webhook differ."""
        return differing(*await both_ways(self.api, pod, known, namespace))


def own_namespaces() -> dict[str, list[int]]:
    """Return the golden cases by cluster; cases of one cluster share its policies."""
    found: dict[str, list[int]] = {}
    for number, case in enumerate(GOLDEN):
        found.setdefault(f"{case.profile} {case.choice}", []).append(number)
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=MINORS)
async def plane(request: pytest.FixtureRequest) -> AsyncIterator[Plane]:
    minor: Minor = request.param
    async with ControlPlane(options(minor)) as control, control.api() as api:
        await add_namespace(api, OPTED_OUT, **{names.MANAGED: "false"})
        await add_namespace(api, BIG)
        await add_namespace(api, GUARDED, **{"pod-security.kubernetes.io/enforce": "baseline"})
        await install(api, KNOWN, minor, BIG, GUARDED)
        for numbers in own_namespaces().values():
            for number in numbers:
                await add_namespace(api, f"case-{number}")
            await install(
                api, GOLDEN[numbers[0]].known, minor, *(f"case-{number}" for number in numbers)
            )
        probes = [(in_gang(case.before), f"case-{n}") for n, case in enumerate(GOLDEN)]
        await in_force(api, [(member(), BIG), *probes], KNOWN)
        yield Plane(api)


def member(
    annotations: JSON | None = None, *, container: JSON | None = None, gpus: int = 8, **spec: object
) -> JSON:
    """A member of a gang of four."""
    pod = gpu_pod(gpus, container=container, **spec)
    pod["metadata"]["annotations"] = annotations or {}
    return in_gang(pod)


def affine(key: str, operator: str, *values: str) -> JSON:
    """An affinity to nodes of these labels."""
    expression = {"key": key, "operator": operator, "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


GKE = "cloud.google.com/gke-accelerator"
CASES: dict[str, JSON] = {
    "a plain member": member(),
    "a member of one accelerator": member(gpus=1),
    "a user's variable": member(
        container={"env": [{"name": "NCCL_SOCKET_IFNAME", "value": "bond0"}, {"name": "A"}]}
    ),
    "variables from elsewhere": member(container={"envFrom": [{"configMapRef": {"name": "nccl"}}]}),
    "a user's amount of none": member(
        container={"resources": {"limits": {GPU: "8", "rdma/roce_v2": "0"}}}
    ),
    "a user's network": member({"k8s.v1.cni.cncf.io/networks": "mine,rdma-network@net7"}),
    "a network with its namespace": member({"k8s.v1.cni.cncf.io/networks": "big/rdma-network"}),
    "another network of the user's": member({"k8s.v1.cni.cncf.io/networks": " mine "}),
    "networks that cannot be read": member({"k8s.v1.cni.cncf.io/networks": "mine,,other"}),
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
    "another scheduler's name": member(schedulerName="volcano"),
    "a scheduler that is not ours": member(schedulerName="my-own"),
    "a pod with a gate of others": member(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
    "a member without accelerators": in_gang(
        {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    ),
    "a pod of nobody's": {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "i"}]},
    },
    "a pod alone": gpu_pod(),
    "an opted-out pod": member({names.INJECT: "false"}),
    "a pod that wants no fabric": member({names.FABRIC: "none"}),
    "a fabric nobody knows": member({names.FABRIC: "token-ring"}),
    "a fabric of whole nodes for a part": member({names.FABRIC: "gke-gib"}, gpus=4),
    "a kind of node by selector": member(
        {names.FABRIC: "gke-gib"}, nodeSelector={GKE: "nvidia-b200"}
    ),
    "a kind of node by affinity": member(
        {names.FABRIC: "gke-gib"}, affinity=affine(GKE, "In", "nvidia-b200")
    ),
    "a pool by affinity": member(
        {names.FABRIC: "gke-tcpx"}, affinity=affine(GKE, "In", "nvidia-h100-80gb")
    ),
    "two kinds by affinity": member(
        {names.FABRIC: "gke-gib"}, affinity=affine(GKE, "In", "nvidia-b200", "nvidia-h200-141gb")
    ),
    "another pool by affinity": member(
        {names.FABRIC: "gke-tcpx"}, affinity=affine(GKE, "NotIn", "nvidia-h100-80gb")
    ),
    "an init container that asks": member(
        initContainers=[{"name": "warm", "image": "i", "resources": {"limits": {GPU: "1"}}}]
    ),
    "a sidecar that does not ask": member(
        initContainers=[{"name": "log", "image": "i", "restartPolicy": "Always"}]
    ),
    "many variables": member(
        container={"env": [{"name": f"N{i}", "value": "ü"} for i in range(1000)]}
    ),
    "a gang of no size": member({names.GANG_SIZE: "0"}),
    "a gang of four words": member({names.GANG_SIZE: "four"}),
    "a minimum above the size": member({names.GANG_MIN: "5"}),
    "a plan of the user's": member({names.PLAN: "{}"}),
}


@pytest.mark.parametrize("case", CASES)
async def test_policies_and_webhook_make_the_same_of_a_pod(plane: Plane, case: str) -> None:
    assert await plane.differences(CASES[case], KNOWN, BIG) == []


@pytest.mark.parametrize("fabric", sorted(set(FABRICS) - LACKING))
@pytest.mark.parametrize("gpus", [1, 4, 8])
async def test_a_pod_that_names_a_fabric_gets_the_same_from_both(
    plane: Plane, fabric: str, gpus: int
) -> None:
    assert await plane.differences(member({names.FABRIC: fabric}, gpus=gpus), KNOWN, BIG) == []


async def test_what_pod_security_forbids_is_left_out(plane: Plane) -> None:
    spec = (await kept(plane.api, member(), GUARDED))["spec"]
    assert "hostNetwork" not in spec
    assert "securityContext" not in spec["containers"][0]
    assert "NCCL_SOCKET_IFNAME" in {e["name"] for e in spec["containers"][0]["env"]}


@pytest.mark.parametrize("number", range(len(GOLDEN)), ids=lambda n: str(GOLDEN[n]))
async def test_a_golden_case_comes_out_of_policies_as_of_the_webhook(
    plane: Plane, number: int
) -> None:
    case = GOLDEN[number]
    found = await plane.differences(in_gang(case.before), case.known, f"case-{number}")
    assert found == sorted(allowed(case))


def allowed(case: Case) -> list[str]:
    return []
