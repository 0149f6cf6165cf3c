"""The pods of a node, shown by an extender to that node's plugin, beside a real API server.

::

    plugin's pod on n1 ──its token (node n1)──► extender ──► kube-apiserver
                                │ n2: 403                    ▲
                                └──── no right on pods ──────┘ 403
"""

import asyncio
import json
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml
from support.apiservers.boundtokens import bound_token, pods_token
from support.extenders.installation import certificates
from support.kubelets.pluginprocess import plugin
from support.machine import quickyaml
from support.machine.patience import PATIENCE_S
from support.machine.shortpath import short_folder

from deviceplugin.cluster import podfeed
from deviceplugin.cluster.podfeed import client_for
from deviceplugin.config import PodFeedSettings
from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options, collection
from loadtest.testbed.controlplane.programs import Program, free_port
from loadtest.testbed.deployment.muster import RBAC
from muster.cli.main import main
from muster.kube import wire
from muster.kube.changes import Change, ObjectGone, Synced, Upserted
from muster.kube.client import KubeClient
from muster.kube.errors import Forbidden
from muster.kube.http import auth
from muster.kube.names import NODE_ALLOCATIONS
from muster.kube.resources import PODS as PODS_OF_ALL

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
MANIFESTS = Path(__file__).parents[3] / "manifests"
PODS = "/api/v1/namespaces/default/pods"
NODES, PLUGIN = "muster-nodes", "muster-device-plugin"
PASSWORD = "hunter2"  # made up


@dataclass
class Entry:
    """An extender beside an API server, and tokens of plugins."""

    plane: ControlPlane
    api: Api
    directory: Path
    url: str
    tokens: dict[str, str]  # by node

    async def ask(self, node: str, token: str) -> tuple[int, JSON]:
        context = ssl.create_default_context(cafile=str(self.directory / "ca.crt"))
        headers = {"Authorization": f"Bearer {token}"}
        connector = aiohttp.TCPConnector(ssl=context)
        async with (
            aiohttp.ClientSession(self.url, connector=connector, headers=headers) as session,
            session.get(f"/v1/nodes/{node}/pods") as reply,
        ):
            return reply.status, json.loads(await reply.text())

    async def add(self, name: str, node: str) -> None:
        container = {
            "name": "main",
            "image": "busybox",
            "env": [{"name": "PASSWORD", "value": PASSWORD}],
            "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "1"}},
        }
        spec = {"nodeName": node, "containers": [container]}
        await self.api.create(PODS, {"metadata": {"name": name}, "spec": spec})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def entry(minor: Minor, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Entry]:
    directory = tmp_path_factory.mktemp("nodepods")
    certificates(directory)
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(ControlPlane(Options(minor=minor, rbac=RBAC)))
        api = await stack.enter_async_context(plane.api())
        await _rights(api)
        for name in ("n1", "n2"):
            await api.create("/api/v1/nodes", {"metadata": {"name": name}})
        port = free_port()
        program = _extender(plane, directory, port)
        program.start()
        stack.push_async_callback(program.stop)
        await program.wait_ready()
        tokens = {node: await pods_token(api, NODES, PLUGIN, node) for node in ("n1", "n2")}
        yield Entry(plane, api, directory, f"https://localhost:{port}", tokens)


async def _rights(api: Api) -> None:
    """Install the plugin's rights as shipped, but for the one on pods."""
    file = MANIFESTS / "components" / "device-plugin" / "rbac.yaml"
    for obj in quickyaml.load_all(file.read_text()):
        if "rules" in obj:
            rules = [rule for rule in obj["rules"] if rule["resources"] != ["pods"]]
            assert len(rules) == len(obj["rules"]) - 1
            obj["rules"] = rules
        await api.create(collection(obj), obj)


def _extender(plane: ControlPlane, directory: Path, port: int) -> Program:
    """Return the extender with the shipped configuration."""
    text = (MANIFESTS / "base" / "extender-config.yaml").read_text()
    made = quickyaml.load(text.replace("/etc/muster/tls", str(directory)))
    made["listen"] = {"host": "127.0.0.1", "port": port}
    made["leaderElection"] = {"leaderElect": False}
    file = directory / "extender.yaml"
    file.write_text(yaml.safe_dump(made))
    command: list[str | Path] = [sys.executable, "-m", "extender", "--config", file]
    command += ["--kubeconfig", plane.kubeconfig("muster-extender")]
    probe = ["probe", f"https://localhost:{port}/readyz", "--ca", str(directory / "ca.crt")]

    async def ready() -> bool:
        return await asyncio.to_thread(main, probe) == 0

    return Program("extender", command, directory=directory, ready=ready)


async def test_a_plugins_token_shows_the_pods_of_its_node_and_nothing_of_others(
    entry: Entry,
) -> None:
    await entry.add("here", "n1")
    await entry.add("there", "n2")
    for node, pod in (("n1", "here"), ("n2", "there")):
        status, body = await entry.ask(node, entry.tokens[node])
        assert status == 200
        assert {each["metadata"]["name"] for each in body["items"]} == {pod, f"plugin-{node}"}
        [shown] = [each for each in body["items"] if each["metadata"]["name"] == pod]
        [container] = shown["spec"]["containers"]
        assert container == {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        assert PASSWORD not in json.dumps(body)
    status, body = await entry.ask("n2", entry.tokens["n1"])
    assert status == 403
    assert "node 'n2' is asked about" in body["message"]
    assert "is for node 'n1'" in body["message"]
    await _delete(entry.api, "here", "there")


async def test_a_token_of_no_node_or_of_another_account_shows_nothing(entry: Entry) -> None:
    status, body = await entry.ask("n1", await bound_token(entry.api, NODES, PLUGIN, ""))
    assert status == 403
    assert "names no node" in body["message"]
    await entry.api.create("/api/v1/namespaces/default/serviceaccounts", _named("job"))
    status, body = await entry.ask("n1", await pods_token(entry.api, "default", "job", "n1"))
    assert status == 403
    assert "needs a name in callers.node" in body["message"]
    assert (await entry.ask("n1", await bound_token(entry.api, NODES, PLUGIN, "n1")))[0] == 200


async def test_a_plugin_without_rights_on_pods_follows_those_of_its_node(entry: Entry) -> None:
    token = entry.directory / "token"
    token.write_text(entry.tokens["n1"])
    ca = entry.directory / "ca.crt"
    settings = PodFeedSettings(extender=entry.url, ca_file=ca, token_file=token)
    identity = auth.fixed(entry.plane.url, token=entry.tokens["n1"], ca=entry.plane.credentials.ca)
    found: dict[str, wire.Pod] = {}
    synced = asyncio.Event()

    def take(changes: Sequence[Change[wire.Pod]]) -> None:
        for change in changes:
            match change:
                case Upserted(object=pod):
                    found[pod.metadata.name] = pod
                case ObjectGone(meta=meta):
                    del found[meta.name]
                case Synced():
                    synced.set()
                case _:
                    pass

    extender = client_for(settings)
    assert extender is not None
    async with KubeClient(identity) as client, extender:
        with pytest.raises(Forbidden, match="cannot list resource"):
            await client.list(PODS_OF_ALL, fieldSelector="spec.nodeName=n1")
        watch = asyncio.create_task(podfeed.feed(client, "n1", extender).run(take))
        try:
            async with asyncio.timeout(PATIENCE_S):
                await synced.wait()
            await entry.add("comes", "n1")
            await entry.add("elsewhere", "n2")
            await _until(lambda: "comes" in found)
            assert found["comes"].status.phase == "Pending"
            status = {"status": {"phase": "Running"}}
            await entry.api.patch(f"{PODS}/comes/status", status)
            await _until(lambda: found["comes"].status.phase == "Running")
            await _delete(entry.api, "comes", "elsewhere")
            await _until(lambda: "comes" not in found)
            assert "elsewhere" not in found
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch


async def test_the_plugin_works_with_its_shipped_rights_less_the_one_on_pods(entry: Entry) -> None:
    """What it says of the pods' devices it says only once it knows the pods of its node."""
    token = entry.directory / "plugins-token"
    token.write_text(entry.tokens["n1"])
    shown = {
        "extender": entry.url,
        "caFile": str(entry.directory / "ca.crt"),
        "tokenFile": str(token),
    }
    with short_folder() as folder:
        for name, settings in (("ours", {"pods": shown}), ("present", {})):
            file = folder / f"{name}.yaml"
            file.write_text(yaml.safe_dump(settings))
        options = ("--kubeconfig", str(_kubeconfig(entry, folder)))
        present = (*options, "--config", str(folder / "present.yaml"))
        async with plugin(folder, *present, cluster=True, name="present") as refused:
            await _eventually(lambda: _logged(refused.log, "cannot list resource"))
            assert not await _allocations(entry)
        ours = (*options, "--config", str(folder / "ours.yaml"))
        async with plugin(folder, *ours, cluster=True):
            await _eventually(lambda: _allocations(entry))


def _kubeconfig(entry: Entry, folder: Path) -> Path:
    made = quickyaml.load(entry.plane.kubeconfig("observer").read_text())
    made["users"][0]["user"] = {"token": entry.tokens["n1"]}
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(made))
    return file


async def _logged(log: Path, text: str) -> bool:
    return text in await asyncio.to_thread(log.read_text)


async def _allocations(entry: Entry) -> bool:
    node = await entry.api.get("/api/v1/nodes/n1")
    return NODE_ALLOCATIONS in node["metadata"].get("annotations", {})


async def _eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110  it comes over HTTP
            await asyncio.sleep(0.1)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  it comes over HTTP
            await asyncio.sleep(0.02)


async def _delete(api: Api, *pods: str) -> None:
    for pod in pods:
        await api.delete(f"{PODS}/{pod}", grace_s=0)


def _named(name: str) -> JSON:
    return {"metadata": {"name": name}}
