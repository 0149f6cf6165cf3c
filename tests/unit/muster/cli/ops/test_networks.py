"""`muster networks` on a simulated API server.

::

    pool jobs: VNIs 7 to 9        vni-7 on n1 (ready), n2 (its agent is late), n3 (no agent)
                                  vni-8 deleted, n1 still has devices of it
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import yaml
from support.apiservers.apifaults import Fault, api_server
from support.networks.jobnetworks import NETWORKS, POOLS, agent, install, pool

from loadtest.testbed.client.api import Api
from muster.cli.main import main
from muster.cli.networks import networkviews
from muster.cli.ops.networks import Network, Networks, NetworkState
from muster.kube.kinds.jobnetworks import JobNetworkSpec, Peer, network_body

Fill = Callable[[Api], Awaitable[None]]


async def said(tmp_path: Path, *words: str, fill: Fill, fault: Fault | None = None) -> int:
    """Fill a cluster and run the command on it."""
    async with api_server() as (server, url), Api(url) as api:
        await fill(api)
        if fault is not None:
            server.faults.append(fault)
        config = tmp_path / "kubeconfig"
        cluster = {"name": "c", "cluster": {"server": url}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        user = {"name": "u", "user": {"token": "t"}}
        config.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "c",
                    "clusters": [cluster],
                    "contexts": [context],
                    "users": [user],
                }
            )
        )
        return await asyncio.to_thread(main, ["networks", "--kubeconfig", str(config), *words])


async def nothing(_: Api) -> None:
    """Leave the cluster as it is."""


async def bare(api: Api) -> None:
    await install(api)


async def two(api: Api) -> None:
    await install(api)
    await accepted(api, "jobs", 7, 9, federation={"first": 1, "last": 6})
    for vni, gang, nodes in ((7, "train", ("n1", "n2", "n3")), (8, "eval", ("n1",))):
        peers = tuple(Peer(name=node, address=f"10.0.0.{node[1]}") for node in nodes)
        spec = JobNetworkSpec(
            vni=vni, pool="jobs", gang=f"muster/a/{gang}", namespace="a",
            subnet="198.18.0.0/15", mtu=1450, port=4789, nodes=peers,
        )  # fmt: skip
        await api.create(NETWORKS, network_body(spec))
    await agent(api, "n1", 0, 7, 8)
    await agent(api, "n2", 1)
    await api.delete(f"{NETWORKS}/vni-8", grace_s=None)


async def accepted(api: Api, name: str, first: int, last: int, **more: object) -> None:
    """Create a pool with the status that the leader gives it."""
    conditions = more.pop("conditions", [{"type": "Accepted", "status": "True", "message": ""}])
    await api.create(POOLS, pool(name, first, last, **more))
    await api.patch(f"{POOLS}/{name}/status", {"status": {"conditions": conditions}})


def cells(line: str) -> list[str]:
    """Return the cells of a line; columns are three spaces apart."""
    return [cell.strip() for cell in line.split("   ") if cell.strip()]


async def test_it_shows_what_is_free_who_has_which_vni_and_which_node_is_not_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await said(tmp_path, fill=two) == 0
    lines = [cells(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == [
        ["POOL", "VNIS", "USED", "FREE", "FEDERATION", "STATE"],
        ["jobs", "7-9", "2", "1", "1-6", "in use"],
        [],
    ]
    assert lines[3] == ["VNI", "GANG", "POOL", "MTU", "NODES", "AGE", "STATE"]
    seven, eight = lines[4], lines[5]
    assert seven[:5] == ["7", "muster/a/train", "jobs", "1450", "3"]
    assert seven[5].endswith("s")
    assert seven[6] == "pending: n2; no agent: n3"
    assert eight[6] == "leaving; devices are left on n1"


async def test_one_network_is_shown_with_each_of_its_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("7", "vni-7", "train", "a/train", "muster/a/train"):
        assert await said(tmp_path, name, fill=two) == 0
        out = capsys.readouterr().out.splitlines()
        assert ["VNI", "7, of pool jobs"] in [cells(line) for line in out]
        assert ["Addresses", "198.18.0.0/15, MTU 1450, UDP port 4789"] in map(cells, out)
        assert [cells(line) for line in out[-3:]] == [
            ["n1", "10.0.0.1", "ready"],
            ["n2", "10.0.0.2", "pending: its agent has not made the devices yet"],
            ["n3", "10.0.0.3", "no agent: muster vni-agent does not run there"],
        ]


async def test_a_gang_without_a_network_is_told_where_to_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await said(tmp_path, "rain", fill=two) == 1
    assert "'rain' has no network" in capsys.readouterr().err


async def test_scripts_get_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await said(tmp_path, "--json", fill=two) == 0
    found = json.loads(capsys.readouterr().out)
    assert [network["state"] for network in found["networks"]] == ["pending", "leaving"]
    assert (found["pools"][0]["size"], found["pools"][0]["used"]) == (3, 2)
    assert await said(tmp_path, "7", "--json", fill=two) == 0
    assert json.loads(capsys.readouterr().out)["nodes"][2]["state"] == "no agent"


async def test_where_nothing_is_installed_it_says_what_to_apply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await said(tmp_path, fill=nothing) == 1
    assert "apply manifests/components/job-networks" in capsys.readouterr().err


async def test_without_pools_it_says_which_one_to_begin_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await said(tmp_path, fill=bare) == 0
    out = capsys.readouterr().out
    assert out.startswith("no pools: no gang gets a network of its own")
    assert "no networks: " in out
    assert "no node has reported" not in out  # nobody needs an agent yet


async def test_what_keeps_every_gang_waiting_stands_below(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fill(api: Api) -> None:
        await install(api, "network-attachment-definitions")
        await api.create(POOLS, pool())

    assert await said(tmp_path, fill=fill) == 0
    out = capsys.readouterr().out
    assert "not used: not checked yet: is the extender running?" in out
    assert "install Multus" in out
    assert "no node has reported: muster vni-agent runs nowhere" in out


async def test_a_pool_says_why_it_is_not_used_and_what_jobs_still_have_of_a_federations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fill(api: Api) -> None:
        await install(api)
        bad = {"type": "Accepted", "status": "False", "message": "spec.range 5-9 overlaps"}
        await accepted(api, "bad", 5, 9, conditions=[bad])
        good = {"type": "Accepted", "status": "True", "message": ""}
        late = {"type": "FederationFree", "status": "False", "message": "jobs still have VNI 3"}
        await accepted(api, "good", 20, 29, conditions=[good, late])

    assert await said(tmp_path, fill=fill) == 0
    lines = [cells(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[1][-1] == "not used: spec.range 5-9 overlaps"
    assert lines[2][-1] == "jobs still have VNI 3"


async def test_a_refusal_is_told_in_the_api_servers_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = Fault("GET", POOLS, code=403, left=9)
    assert await said(tmp_path, fill=two, fault=refusal) == 4
    assert capsys.readouterr().err.startswith("muster: 403")


def network(vni: int, gang: str, state: NetworkState = NetworkState.READY) -> Network:
    return Network(vni, gang, "a", "jobs", "198.18.0.0/15", 1450, 4789, 1000.0, state, ())


def test_ages_are_told_as_kubectl_tells_them() -> None:
    found = Networks((), (network(7, "muster/a/x"),), 1, ())
    assert cells(networkviews.table(found, 1000.0 + 7260).splitlines()[-1])[-2:] == [
        "2h1m",
        "ready",
    ]
