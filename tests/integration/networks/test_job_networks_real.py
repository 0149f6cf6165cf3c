"""Isolated networks on the real control plane, with the rights and the definitions as shipped.

::

    rack r0 ── r0-h00 … r0-h15    (8 GPUs each, an agent's NodeNetwork for each)
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy

import pytest
from support.apiservers.apiproxy import Keeps, StoppingProxy
from support.extenders.realcluster import EVENTS, JSON, PATIENCE_S, PODS, Cluster, cluster, until
from support.machine import quickyaml
from support.networks.agenttokens import token
from support.networks.jobnetworks import (
    ANNOTATION,
    ATTACHMENTS,
    COMPONENT,
    CRDS,
    NETWORKS,
    NODES,
    POOLS,
    address,
    agent,
    definitions,
    isolated,
    pool,
    selections,
)
from support.networks.networksinstalled import installed, stranger

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.cli.main import main

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

HOSTS = 16
MULTUS = "network-attachment-definitions"
REASON = "no VNI free in pool jobs (2 of 2 used)"


@asynccontextmanager
async def site(
    plane: ControlPlane,
    made: JSON,
    *,
    proxy: StoppingProxy | None = None,
    without: str = "",
    **extender: object,
) -> AsyncIterator[Cluster]:
    async with installed(plane, without) as api:
        await api.create(f"{POOLS}?fieldValidation=Strict", made)
        for host in range(HOSTS):
            await agent(api, f"r0-h{host:02d}", host)
        port = None if proxy is None else proxy.port
        async with cluster(plane, proxy_port=port, spareCount=0, **extender) as fleet:
            await fleet.add_racks([0], hosts=HOSTS)
            yield fleet
            await fleet.clear()
            await until(lambda: _is_empty(api))  # nothing leaks


async def _is_empty(api: Api) -> bool:
    """Whether all networks are gone, and their attachments before them.

    Agents that have nothing to take down say so at once.
    """
    if (await api.get(NETWORKS))["items"]:
        return False
    assert (await api.get(ATTACHMENTS))["items"] == []
    return True


async def networks(fleet: Cluster) -> dict[str, JSON]:
    """Return the networks by the gang that has them, those that are being deleted left out."""
    found = (await fleet.api.get(NETWORKS))["items"]
    living = [each for each in found if "deletionTimestamp" not in each["metadata"]]
    return {each["spec"]["gang"].rpartition("/")[2]: each["spec"] for each in living}


async def end(fleet: Cluster, gang: pods.Gang) -> None:
    for rank in range(gang.size):
        await fleet.api.delete(f"{PODS}/{gang.name}-{rank}")


async def test_each_job_has_a_network_and_the_third_waits_until_one_has_ended(
    real_plane: ControlPlane,
) -> None:
    async with site(real_plane, pool("jobs", 1000, 1001)) as fleet:
        one, two, three = (isolated(name, 4) for name in ("one", "two", "three"))
        for gang in (one, two):
            await fleet.submit(gang)
            await fleet.bound(gang)
        given = await networks(fleet)
        assert {given["one"]["vni"], given["two"]["vni"]} == {1000, 1001}
        for gang in (one, two):
            spec, placement = given[gang.name], await fleet.placement(gang)
            assert {peer["name"] for peer in spec["nodes"]} == set(placement.values())
            name = f"muster-vni-{spec['vni']}"
            await fleet.api.get(f"{ATTACHMENTS}/{name}")
            members = await fleet.list_pods(gang)
            assert [selections(pod)[-1]["name"] for pod in members] == [name] * 4
            assert len({address(pod) for pod in members}) == 4
        await fleet.submit(three)
        await until(lambda: _is_told(fleet))
        await fleet.stays_unbound(three)
        assert "three" not in await networks(fleet)
        await end(fleet, one)
        await fleet.bound(three)
        assert (await networks(fleet))["three"]["vni"] == given["one"]["vni"]


async def _is_told(fleet: Cluster) -> bool:
    """Whether users read why the third waits: in an Event, and in the pod's condition."""
    events = (await fleet.api.get(EVENTS))["items"]
    told = any(REASON in event.get("note", "") for event in events)
    pod = await fleet.api.get(f"{PODS}/three-0")
    conditions = pod["status"].get("conditions", [])
    return told and any("no isolated network" in c.get("message", "") for c in conditions)


async def test_without_multus_a_gang_waits_is_explained_and_goes_when_it_is_installed(
    real_plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    async with site(real_plane, pool(), without=MULTUS) as fleet:
        gang = isolated("train", 2)
        await fleet.submit(gang)
        command = ["explain", "train-0", "--extender", fleet.muster.extender_url]

        async def told() -> bool:
            await asyncio.to_thread(main, command)
            return "install Multus" in capsys.readouterr().out

        await until(told)
        await fleet.stays_unbound(gang)
        assert await networks(fleet) == {}
        [multus] = [d for d in definitions() if d["spec"]["names"]["plural"] == MULTUS]
        await fleet.api.create(CRDS, multus)
        await fleet.bound(gang)
        assert (await networks(fleet)).keys() == {"train"}


@pytest.mark.parametrize(
    ("method", "part", "number", "keeps"),
    [
        ("POST", "/jobnetworks", 1, "request"),  # nothing is there
        ("POST", "/jobnetworks", 1, "reply"),  # it is, and nobody knows
        ("POST", "/network-attachment-definitions", 1, "request"),
        ("PATCH", "/pods/train-", 1, "request"),  # allocated, nothing released
        ("PATCH", "/pods/train-", 3, "reply"),  # half of it released
    ],
)
async def test_killed_anywhere_between_allocation_and_release_it_leaks_none_and_doubles_none(
    real_plane: ControlPlane, method: str, part: str, number: int, keeps: Keeps
) -> None:
    async with (
        StoppingProxy(real_plane) as proxy,
        site(real_plane, pool(), proxy=proxy, releaseConcurrency=1) as fleet,
    ):
        gang, rival = isolated("train", 4), isolated("rival", 4)
        stop = proxy.stop_at(method, part, number, keeps=keeps)
        await fleet.submit(gang)
        async with asyncio.timeout(PATIENCE_S):
            await stop.reached.wait()
        fleet.muster.extender.kill()
        proxy.open()
        before = {spec["vni"] for spec in (await networks(fleet)).values()}
        await fleet.muster.start(fleet.muster.extender)
        await fleet.bound(gang)
        await fleet.submit(rival)
        await fleet.bound(rival)
        given = await networks(fleet)
        assert given.keys() == {"train", "rival"}
        assert before <= {given["train"]["vni"]}
        assert given["train"]["vni"] != given["rival"]["vni"]
        members = await fleet.list_pods(gang)
        assert {selections(pod)[-1]["name"] for pod in members} == {
            f"muster-vni-{given['train']['vni']}"
        }
        assert len({address(pod) for pod in members}) == 4
        await end(fleet, gang)
        await end(fleet, rival)
        await until(lambda: _is_empty(fleet.api))


async def test_a_network_follows_a_member_that_is_made_anew_elsewhere(
    real_plane: ControlPlane,
) -> None:
    async with site(real_plane, pool()) as fleet:
        gang = isolated("train", 2)
        await fleet.submit(gang)
        await fleet.bound(gang)
        lost = (await fleet.placement(gang))["train-1"]
        await fleet.api.patch(f"/api/v1/nodes/{lost}", {"spec": {"unschedulable": True}})
        await fleet.api.delete(f"{PODS}/train-1")
        *_, last = pods.members(gang)
        await fleet.api.create(PODS, last)
        await fleet.bound(gang)
        placement = await fleet.placement(gang)
        assert placement["train-1"] != lost

        async def follows() -> bool:
            spec = (await networks(fleet))["train"]
            return {peer["name"] for peer in spec["nodes"]} == set(placement.values())

        await until(follows)


def spoilt(**spec: object) -> JSON:
    return pool("bad", **spec)  # type: ignore[arg-type]


BAD_POOLS = {
    "federation overlaps": spoilt(federation={"first": 900, "last": 1000}),
    "first is above": spoilt(first=9, last=8),
    "16777215": spoilt(last=1 << 24),
    "greater than or equal to 1": spoilt(first=0),
    "4095": spoilt(federation={"first": 1, "last": 4096}),
    "is no network": spoilt(subnet="198.18.0.1/15"),
    "podSelector": {**pool("bad"), "spec": {"range": {"first": 1, "last": 2}}},
    "1280": spoilt(mtu=1000),
}


async def test_what_can_be_wrong_about_one_object_is_refused_by_the_api_server(
    real_plane: ControlPlane,
) -> None:
    async with installed(real_plane) as api:
        for text, bad in BAD_POOLS.items():
            with pytest.raises(ApiFailed, match=text):
                await api.create(POOLS, bad)
        shipped = quickyaml.load((COMPONENT / "pool.yaml").read_text())
        made = await api.create(f"{POOLS}?fieldValidation=Strict", shipped)
        assert (made["spec"]["subnet"], made["spec"]["port"]) == ("198.18.0.0/15", 4789)
        bare = {**shipped, "metadata": {"name": "bare"}, "spec": {"podSelector": {}}}
        assert (await api.create(POOLS, bare))["spec"]["range"] == {"first": 1000, "last": 2000}
        network = _network(1000)
        await api.create(NETWORKS, network)
        with pytest.raises(ApiFailed, match="already exists"):
            await api.create(NETWORKS, network)
        with pytest.raises(ApiFailed, match="nobody has a VNI twice"):
            await api.create(NETWORKS, {**network, "metadata": {"name": "vni-1001"}})
        with pytest.raises(ApiFailed, match="only nodes can be changed"):
            await api.patch(f"{NETWORKS}/vni-1000", {"spec": {"gang": "muster/default/other"}})


def _network(vni: int) -> JSON:
    spec = {"vni": vni, "pool": "jobs", "gang": "muster/default/a", "namespace": "default"}
    more = {"subnet": "198.18.0.0/15", "mtu": 1450, "port": 4789, "nodes": []}
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "JobNetwork",
        "metadata": {"name": f"vni-{vni}"},
        "spec": {**spec, **more},
    }


async def test_nobody_but_muster_puts_a_pod_into_a_jobs_network(real_plane: ControlPlane) -> None:
    async with installed(real_plane) as api:
        for form in ("a, b/muster-vni-7@x", '[{"name":"muster-vni-7"}]'):
            bad = stranger()
            bad["metadata"]["annotations"][ANNOTATION] = form
            with pytest.raises(ApiFailed, match="by Muster alone"):
                await api.create(PODS, bad)
        plain = pods.pod("plain", annotations={ANNOTATION: "storage"})
        plain["spec"]["schedulerName"] = "nobody"
        await api.create(PODS, plain)
        join = {"metadata": {"annotations": {ANNOTATION: "storage,muster-vni-7"}}}
        for subresource in ("", "/status"):
            with pytest.raises(ApiFailed, match="by Muster alone"):
                await api.patch(f"{PODS}/plain{subresource}", join)
        await api.patch(f"{PODS}/plain", {"metadata": {"annotations": {ANNOTATION: "other"}}})
        await api.delete(f"{PODS}/plain")
        definition = {
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": "mine"},
            "spec": {"config": '{"type":"bridge","bridge":"br7"}'},
        }
        await api.create(ATTACHMENTS, definition)
        for bad_name, config in (("muster-vni-7", "{}"), ("x", '{"bridge":"mvb7"}')):
            bad = deepcopy(definition) | {"metadata": {"name": bad_name}}
            bad["spec"] = {"config": config}
            with pytest.raises(ApiFailed, match=r"Muster's|jobs' networks"):
                await api.create(ATTACHMENTS, bad)


SPELLED = "muster\\u002dvni-7"  # as JSON may have it
DEFAULT_NETWORK = "v1.multus-cni.io/default-network"
IN_OTHER_WORDS = [
    (DEFAULT_NETWORK, "muster-vni-7"),
    (DEFAULT_NETWORK, "kube-system/muster-vni-7@x"),
    (DEFAULT_NETWORK, f'[{{"name":"{SPELLED}"}}]'),
    (ANNOTATION, f'[{{"name":"{SPELLED}"}}]'),
    (ANNOTATION, '[{"n\\u0061me":"muster-vni-7"}]'),
    (ANNOTATION, '[{"name":"storage"},{"name":"\\u006Duster-vni-7"}]'),
]
CONFIGS = [
    '{"type":"bridge","bridge":"mv\\u00627"}',
    '{"plugins":[{"type":"macvlan","m\\u0061ster":"mvx7"}]}',
]


async def test_another_spelling_of_a_jobs_network_is_refused_too(real_plane: ControlPlane) -> None:
    async with installed(real_plane) as api:
        for key, text in IN_OTHER_WORDS:
            bad = stranger()
            bad["metadata"]["annotations"] = {key: text}
            with pytest.raises(ApiFailed, match=r"by Muster alone|write letters as they are"):
                await api.create(PODS, bad)
        for config in CONFIGS:
            bad = {
                "apiVersion": "k8s.cni.cncf.io/v1",
                "kind": "NetworkAttachmentDefinition",
                "metadata": {"name": "x"},
                "spec": {"config": config},
            }
            with pytest.raises(ApiFailed, match=r"jobs' networks|write letters as they are"):
                await api.create(ATTACHMENTS, bad)


@asynccontextmanager
async def agent_of(api: Api, plane: ControlPlane, node: str) -> AsyncIterator[Api]:
    """Give a client with the token of the agent on a node that is made for it ("" for none)."""
    if node:
        await api.create("/api/v1/nodes", {"metadata": {"name": node}})
    shown = await token(api, node)
    async with Api(plane.url, token=shown, ca=plane.credentials.ca) as own:
        yield own
    if node:
        await api.delete(f"/api/v1/nodes/{node}", grace_s=None)


async def test_an_agent_speaks_for_the_node_that_its_token_was_made_for(
    real_plane: ControlPlane,
) -> None:
    async with installed(real_plane) as api, agent_of(api, real_plane, "n1") as own:
        await agent(own, "n1", 1)
        await agent(own, "n1", 1, 1000)
        with pytest.raises(ApiFailed, match="token was made for, n1"):
            await agent(own, "n2", 2)


async def test_an_agents_token_that_names_no_node_writes_nothing(real_plane: ControlPlane) -> None:
    async with installed(real_plane) as api, agent_of(api, real_plane, "") as own:
        with pytest.raises(ApiFailed, match="this token names none"):
            await agent(own, "n1", 1)


async def test_the_agent_has_the_rights_that_it_uses_and_no_others(
    real_plane: ControlPlane,
) -> None:
    async with installed(real_plane) as api, agent_of(api, real_plane, "n1") as own:
        await api.create(NETWORKS, _network(1000))
        await own.get(NETWORKS)
        await own.get(f"{NETWORKS}/vni-1000")
        await agent(own, "n1", 1, 1000)
        await agent(own, "n1", 1)
        for path in (POOLS, NODES, "/api/v1/nodes", "/api/v1/pods", "/api/v1/secrets"):
            with pytest.raises(ApiFailed, match="403"):
                await own.get(path)
        with pytest.raises(ApiFailed, match="403"):
            await own.patch(f"{NETWORKS}/vni-1000", {"spec": {"nodes": []}})
        with pytest.raises(ApiFailed, match="403"):
            await own.delete(f"{NETWORKS}/vni-1000")
