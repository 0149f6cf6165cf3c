"""`muster vni list` on a simulated API server."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from support.apifaults import api_server
from support.jobnetworks import NETWORKS, POOLS, agent, install, pool

from cli.main import main
from kube.jobnetworks import JobNetworkSpec, Peer, network_body
from loadtest.api import Api


async def said(tmp_path: Path, *words: str, crds: bool = True) -> int:
    """Fill a cluster and run the command on it."""
    async with api_server() as (_, url), Api(url) as api:
        if crds:
            await fill(api)
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
        return await asyncio.to_thread(main, ["vni", "list", "--kubeconfig", str(config), *words])


async def fill(api: Api) -> None:
    await install(api)
    await api.create(POOLS, pool("jobs", 7, 9))
    for vni, nodes in ((7, ("n1", "n2")), (8, ("n1",))):
        peers = tuple(Peer(name=node, address="10.0.0.1") for node in nodes)
        spec = JobNetworkSpec(
            vni=vni, pool="jobs", gang=f"muster/a/job-{vni}", namespace="a",
            subnet="198.18.0.0/15", mtu=1450, port=4789, nodes=peers,
        )  # fmt: skip
        await api.create(NETWORKS, network_body(spec))
    await agent(api, "n1", 1, 7, 8)
    await agent(api, "n2", 2)
    await api.delete(f"{NETWORKS}/vni-8", grace_s=None)


async def test_it_shows_who_has_which_and_which_node_is_not_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await said(tmp_path) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == ["jobs", "7-9", "2"]
    assert lines[4] == [
        "7",
        "muster/a/job-7",
        "jobs",
        "1450",
        "pending",
        "2,",
        "not",
        "ready:",
        "n2",
    ]
    assert lines[5] == ["8", "muster/a/job-8", "jobs", "1450", "leaving", "1"]


async def test_scripts_get_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await said(tmp_path, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [network["state"] for network in found["networks"]] == ["pending", "leaving"]


async def test_where_nothing_is_installed_it_says_what_to_apply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await said(tmp_path, crds=False) == 1
    assert "apply manifests/components/job-networks" in capsys.readouterr().err
