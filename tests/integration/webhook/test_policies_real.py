"""The policies that stand in for the webhook, on a real kube-apiserver of each minor.

::

    pod ──► policies ──────► what the API server keeps  ─┐
    pod ──► webhook's code ► what the API server keeps  ─┴─ differ as policies.differences says
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus

import aiohttp
import pytest
import pytest_asyncio
from support.injections.fabricgoldens import cases
from support.injections.injecting import FABRICS, GPU, JSON, facts, gpu_pod
from support.webhooks.staticpolicies import (
    OPTED_OUT,
    Refused,
    add_namespace,
    adding,
    again,
    both_ways,
    differing,
    documents,
    in_force,
    in_gang,
    install,
    of_the_fabric,
    options,
    served,
    stored,
    until_it_has,
)

from loadtest.testbed.client.api import MERGE_PATCH, Api
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.injection.policies.differences import DIFFERENCES, missing
from muster.injection.subject import Facts
from muster.kube import names

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(900),  # the first test waits for hundreds of policies to be compiled
]

FIRST = {"profile": "generic-roce-hostnet"}
REST = [{"profile": name, "pods": "asking"} for name in FABRICS if name != FIRST["profile"]]
RBAC = "rbac.authorization.k8s.io"
POOL = [{"key": "pool", "operator": "Equal", "value": "train"}]
KNOWN = facts(FIRST, *REST, tolerations=POOL)
GOLDEN = cases()
BIG, GUARDED, STRICT, LENIENT = "big", "guarded", "strict", "lenient"
WHOLE_NODES = {"profile": "gke-tcpx"}
CLUSTERS = {
    STRICT: facts(WHOLE_NODES, withoutFabric="deny"),
    LENIENT: facts(WHOLE_NODES, withoutFabric="warn"),
}


@dataclass
class Plane:
    """An API server with the policies of every cluster; golden case i has namespace case-i."""

    api: Api
    control: ControlPlane

    async def send(self, method: str, path: str, body: JSON, user: str = "") -> tuple[int, str]:
        """Send as an administrator, or as somebody else; returns status, and what is said."""
        owner = self.control.credentials
        headers = {"Authorization": f"Bearer {owner.tokens['observer']}"}
        headers |= {"Impersonate-User": user} if user else {}
        headers |= {"Content-Type": MERGE_PATCH if method == "PATCH" else "application/json"}
        trusted = ssl.create_default_context(cafile=owner.ca)
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.request(method, self.control.url + path, json=body, ssl=trusted) as reply,
        ):
            warned = " ".join(reply.headers.getall("Warning", []))
            return reply.status, warned or (await reply.json()).get("message", "")

    async def differences(self, pod: JSON, known: Facts, namespace: str) -> list[str]:
        """The fields in which policies and webhook differ; a second run changes nothing."""
        found, wanted = await both_ways(self.api, pod, known, namespace)
        if "refused" not in found:
            assert differing(await stored(self.api, again(found), namespace), found) == []
        return differing(found, wanted)


def own_namespaces() -> dict[str, list[int]]:
    """Return the golden cases by cluster; cases of one cluster share its policies."""
    found: dict[str, list[int]] = {}
    for number, case in enumerate(GOLDEN):
        found.setdefault(f"{case.profile} {case.choice}", []).append(number)
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[Plane]:
    async with ControlPlane(options(minor)) as control, control.api() as api:
        await have_policies_of_all(api, minor)
        yield Plane(api, control)


async def have_policies_of_all(api: Api, minor: Minor) -> None:
    """Add every cluster's policies; returns when the API server goes by them."""
    await add_namespace(api, OPTED_OUT, **{names.MANAGED: "false"})
    await add_namespace(api, BIG)
    await add_namespace(api, GUARDED, **{"pod-security.kubernetes.io/enforce": "baseline"})
    await install(api, documents(KNOWN, minor), BIG, GUARDED)
    for namespace, known in CLUSTERS.items():
        await add_namespace(api, namespace)
        await install(api, documents(known, minor), namespace)
    await asyncio.gather(*(add_namespace(api, f"case-{n}") for n in range(len(GOLDEN))))
    for numbers in own_namespaces().values():
        policies = of_the_fabric(GOLDEN[numbers[0]].known, minor)
        await install(api, policies, *(f"case-{number}" for number in numbers))
    probes = [(in_gang(GOLDEN[n].before), f"case-{n}") for n in range(len(GOLDEN))]
    others = [(member(), namespace) for namespace in (BIG, *CLUSTERS)]
    await in_force(api, [probes[-1], *others, *probes])


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
    "networks with a name that is none": member({"k8s.v1.cni.cncf.io/networks": "Mine,other"}),
    "networks in no form": member({"k8s.v1.cni.cncf.io/networks": 'mine@["'}),
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


NETWORKS = "k8s.v1.cni.cncf.io/networks"
OF_A_JOB = {
    "batch.kubernetes.io/job-completion-index": "1",
    "batch.kubernetes.io/job-name": "llama",
}
NAMED: dict[str, tuple[JSON, str]] = {
    "stated-amounts": (
        member(
            {names.FABRIC: "nvidia-sriov"},
            container={"resources": {"limits": {GPU: "8", "nvidia.com/sriovlegacy": "2"}}},
        ),
        f"annotations.{NETWORKS}",
    ),
    "json-networks": (member({NETWORKS: '[{"name": "mine"}]'}), f"annotations.{NETWORKS}"),
    "own-words": (member({names.GPU_TIER: "inference"}), "spec.nodeSelector"),
    "ranks": (
        in_gang({**gpu_pod(), "metadata": {"name": "p", "labels": OF_A_JOB}}),
        "spec.containers.main.env",
    ),
}


@pytest.mark.parametrize("name", NAMED)
async def test_a_difference_that_has_a_name_is_in_the_field_that_it_names(
    plane: Plane, name: str
) -> None:
    assert name in DIFFERENCES
    pod, field = NAMED[name]
    found = await plane.differences(pod, KNOWN, BIG)
    assert found
    assert [path for path in found if not path.startswith(field)] == []


async def test_a_fabric_that_the_profile_does_not_list_is_refused_by_policies(plane: Plane) -> None:
    assert "other-fabrics" in DIFFERENCES
    with pytest.raises(
        Refused, match=r"muster.dev/fabric\]: not known here; allowed: gke-tcpx, none"
    ):
        await stored(plane.api, member({names.FABRIC: "plain-tcp"}), LENIENT)


@pytest.mark.parametrize("fabric", sorted(FABRICS))
@pytest.mark.parametrize("gpus", [1, 4, 8])
async def test_a_pod_that_names_a_fabric_gets_the_same_from_both(
    plane: Plane, fabric: str, gpus: int
) -> None:
    assert await plane.differences(member({names.FABRIC: fabric}, gpus=gpus), KNOWN, BIG) == []


# The most mutations, the longest expressions, the most variables.
@pytest.mark.parametrize("fabric", ["gke-tcpx", "coreweave-roce", "volcengine-rdma"])
async def test_the_largest_pod_stays_within_the_cost_that_cel_may_have(
    plane: Plane, fabric: str
) -> None:
    """Past it the pod would be refused."""
    one = member({names.FABRIC: fabric})["spec"]["containers"][0]
    own = [{"name": f"OWN_{number}", "value": "x"} for number in range(32)]
    many = [{**one, "name": f"c{number}", "env": own} for number in range(32)]
    pod = member({names.FABRIC: fabric})
    pod["spec"]["containers"] = many
    assert await plane.differences(pod, KNOWN, BIG) == []


async def test_nothing_static_of_any_fabric_is_left_unsaid() -> None:
    assert missing(KNOWN) == []


async def test_a_gang_without_its_fabric_is_refused_where_the_profile_denies_it(
    plane: Plane,
) -> None:
    part = member(gpus=4)
    assert await plane.differences(part, CLUSTERS[STRICT], STRICT) == []
    with pytest.raises(Refused, match=r"would run over TCP.*gke-tcpx"):
        await stored(plane.api, part, STRICT)


async def test_a_gang_without_its_fabric_is_warned_about_elsewhere(plane: Plane) -> None:
    path = f"/api/v1/namespaces/{LENIENT}/pods?dryRun=All"
    status, told = await plane.send("POST", path, member(gpus=4))
    assert (status, "would run over TCP" in told) == (HTTPStatus.CREATED, True)
    assert await plane.send("POST", path, member(gpus=8)) == (HTTPStatus.CREATED, "")


async def test_only_muster_writes_plans_and_only_administrators_lift_its_gate(
    plane: Plane,
) -> None:
    path = f"/api/v1/namespaces/{BIG}/pods"
    binding = {
        "metadata": {"name": "alice"},
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": RBAC},
        "subjects": [{"kind": "User", "name": "alice", "apiGroup": RBAC}],
    }
    await plane.api.create(f"/apis/{RBAC}/v1/clusterrolebindings", binding)
    await plane.api.create(path, member())
    ungated: JSON = {"spec": {"schedulingGates": []}}
    forbidden: dict[str, JSON] = {
        "only Muster writes its plans": {"metadata": {"annotations": {names.PLAN: "{}"}}},
        "stays in the gang": {"metadata": {"labels": {names.GANG: "other"}}},
        "may not be removed": ungated,
    }
    for rule, change in forbidden.items():
        status, told = await plane.send("PATCH", f"{path}/p", change, "alice")
        assert (status, rule in told) == (HTTPStatus.UNPROCESSABLE_ENTITY, True)
    mine = {"metadata": {"labels": {"mine": "yes"}}}
    assert await plane.send("PATCH", f"{path}/p", mine, "alice") == (HTTPStatus.OK, "")
    assert await plane.send("PATCH", f"{path}/p", ungated) == (HTTPStatus.OK, "")
    await plane.api.delete(f"{path}/p")


async def test_what_another_policy_adds_later_is_seen_and_nothing_comes_twice(
    plane: Plane,
) -> None:
    """It adds an init container that asks for an accelerator, so everything runs again."""
    asks = {GPU: "1"}
    late = {"name": "late", "image": "i", "resources": {"limits": asks, "requests": asks}}
    await install(plane.api, adding(late, await served(plane.api)), BIG)
    pod = member()
    pod["metadata"]["labels"]["late"] = "yes"
    await until_it_has("initContainers", plane.api, pod, BIG)
    found = await stored(plane.api, pod, BIG)
    env = [e["name"] for e in found["spec"]["initContainers"][0]["env"]]
    assert "NCCL_SOCKET_IFNAME" in env
    assert len(set(env)) == len(env)
    assert differing(await stored(plane.api, again(found), BIG), found) == []


async def test_a_pod_of_another_scheduler_is_left_as_it_is(plane: Plane) -> None:
    other = member(schedulerName="my-own")
    assert await stored(plane.api, other, BIG) == await stored(plane.api, other, OPTED_OUT)


async def test_what_pod_security_forbids_is_left_out(plane: Plane) -> None:
    spec = (await stored(plane.api, member(), GUARDED))["spec"]
    assert "hostNetwork" not in spec
    assert "securityContext" not in spec["containers"][0]
    assert "NCCL_SOCKET_IFNAME" in {e["name"] for e in spec["containers"][0]["env"]}


@pytest.mark.parametrize("number", range(len(GOLDEN)), ids=lambda n: str(GOLDEN[n]))
async def test_a_golden_case_comes_out_of_policies_as_of_the_webhook(
    plane: Plane, number: int
) -> None:
    case = GOLDEN[number]
    pod = in_gang(case.before)
    pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]  # the gate is the same everywhere
    assert await plane.differences(pod, case.known, f"case-{number}") == []
