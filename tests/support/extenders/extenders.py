"""A whole extender in this process, over loopback HTTP, against a simulated API server.

Everything is the real part: state, planner, watches, releases, aiohttp. Only the API
server is the stand-in that the contract suite holds to the real one.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from support.apiservers.apifaults import FaultyServer, api_server

from extender.app import make_app
from extender.config.settings import ExtenderConfig
from extender.engine import SteadyClock
from extender.intake.servertime import ServerTime
from extender.wiring.extender import Extender
from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.client.nodes import node
from loadtest.testbed.client.pods import Gang, create_owner, members
from muster.kube import names
from muster.kube.client import KubeClient
from muster.kube.http import auth

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
WITHIN_S = 60.0  # nothing here takes a second; a crowded machine may


def rack_nodes(racks: Mapping[str, int], gpus: int = 8) -> list[JSON]:
    """Return nodes named RACK-INDEX, so many in each rack, all in one zone and block."""
    resources = {"cpu": "192", "memory": "2048Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return [
        node(
            f"{rack}-{index}",
            {names.ZONE: "z", names.BLOCK: "b", names.RACK: rack},
            resources,
        )
        for rack, count in racks.items()
        for index in range(count)
    ]


@dataclass(slots=True)
class World:
    """One cluster with a running extender."""

    api: Api
    server: FaultyServer
    extender: Extender
    http: TestClient[web.Request, web.Application]

    async def nodes(self, racks: Mapping[str, int], gpus: int = 8) -> None:
        """Create nodes, and wait until the extender knows them."""
        made = rack_nodes(racks, gpus)
        for obj in made:
            await self.api.create("/api/v1/nodes", obj)
        state = self.extender.engine.state

        def known() -> bool:
            nodes = state.snapshot().nodes
            return all(nodes.row(obj["metadata"]["name"]) is not None for obj in made)

        await until(known)

    async def gang(
        self, gang: Gang, *, gated: bool = True, owned: bool = True, ranks: range | None = None
    ) -> list[JSON]:
        """Create a gang's pods (those of ``ranks``), gated as the webhook does, or not."""
        owner = await create_owner(self.api, gang) if owned else None
        made = []
        for rank, pod in enumerate(members(gang, owner)):
            if ranks is not None and rank not in ranks:
                continue
            if gated:
                pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
            made.append(await self.api.create(f"/api/v1/namespaces/{gang.namespace}/pods", pod))
        return made

    async def pod(self, name: str) -> JSON:
        """Return a pod as the API server has it."""
        return await self.api.get(f"{PODS}/{name}")

    async def events(self, reason: str) -> list[JSON]:
        """Return the Events of that reason."""
        found = await self.api.get(EVENTS)
        return [event for event in found["items"] if event["reason"] == reason]

    async def released(self, names_: Sequence[str]) -> dict[str, str]:
        """Wait until these pods are released; return pod → planned node."""
        found: dict[str, str] = {}

        async def all_released() -> bool:
            for name in names_:
                note = plan_of(await self.pod(name))
                if note is None:
                    return False
                found[name] = note["node"]
            return True

        await eventually(all_released)
        return found

    async def bind(self, pod: str, to: str) -> None:
        """Bind a pod as kube-scheduler would."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": to},
        }
        await self.api.create(f"{PODS}/{pod}/binding", body)

    async def verb(self, verb: str, body: object) -> dict[str, Any]:
        """Call one of kube-scheduler's verbs; the answer must be 200."""
        async with self.http.post(f"/v1/extender/{verb}", json=body) as response:
            assert response.status == 200, await response.text()
            answer: dict[str, Any] = await response.json()
            return answer

    async def filter(self, pod: JSON, offered: Sequence[str]) -> dict[str, Any]:
        """Call ``filter`` in the bytes of Go's encoder."""
        async with self.http.post("/v1/extender/filter", data=go_args(pod, offered)) as response:
            assert response.status == 200, await response.text()
            answer: dict[str, Any] = await response.json()
            return answer

    async def settled(self) -> None:
        """Wait until every event is applied and nothing is left to plan."""
        quiet = 0
        async with asyncio.timeout(WITHIN_S):
            while quiet < 5:
                await asyncio.sleep(0.01)
                quiet = quiet + 1 if self.extender.is_quiet() else 0
        self.extender.engine.state.validate()


def plan_of(pod: JSON) -> dict[str, Any] | None:
    """Return the plan annotation of a released pod, None while it waits."""
    text = pod["metadata"].get("annotations", {}).get(names.PLAN)
    gates = pod["spec"].get("schedulingGates") or []
    if text is None or any(gate["name"] == names.PLAN_GATE for gate in gates):
        return None
    note: dict[str, Any] = json.loads(text)
    return note


META_ORDER = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation"),
    *("creationTimestamp", "labels", "annotations", "ownerReferences"),
)


def go_pod(pod: JSON) -> JSON:
    """Return a pod with its metadata in the order of Go's struct."""
    meta = pod["metadata"]
    ordered = {key: meta[key] for key in META_ORDER if key in meta}
    return {"metadata": ordered, "spec": pod["spec"], "status": pod.get("status", {})}


def go_args(pod: JSON, offered: Sequence[str]) -> bytes:
    """Return ExtenderArgs as kube-scheduler sends them with nodeCacheCapable."""
    args = {"Pod": go_pod(pod), "Nodes": None, "NodeNames": list(offered)}
    return json.dumps(args, separators=(",", ":")).encode()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition in this process."""
    async with asyncio.timeout(WITHIN_S):
        while not condition():  # noqa: ASYNC110 - several parts may make it true
            await asyncio.sleep(0.005)


async def eventually(condition: Callable[[], Any]) -> None:
    """Wait for a condition that has to be asked for over HTTP."""
    async with asyncio.timeout(WITHIN_S):
        while not await condition():  # noqa: ASYNC110 - it is asked for over HTTP
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running_extender(
    server: FaultyServer,
    url: str,
    config: ExtenderConfig,
    clock: Callable[[], float] = time.time,
    without: Sequence[str] = (),
) -> AsyncIterator[World]:
    """Run an extender on an API server that is there already; ``clock`` tells epoch seconds.

    A ``SteadyClock`` is set to that of the API server, as in a process of its own.
    ``without``: jobs that the test does itself.
    """
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(KubeClient(auth.fixed(url)))
        server_time = ServerTime(client, clock) if isinstance(clock, SteadyClock) else None
        extender = Extender(config, client, clock, server_time)
        for job in without:
            del extender.parts.jobs[job]
        app = make_app(extender.parts)
        http = await stack.enter_async_context(TestClient(TestServer(app)))
        api = await stack.enter_async_context(Api(url))
        await until(extender.sync.synced.is_set)
        yield World(api, server, extender, http)
        extender.engine.state.validate()


@asynccontextmanager
async def world(
    *, clock: Callable[[], float] = time.time, without: Sequence[str] = (), **settings: Any
) -> AsyncIterator[World]:
    """Run an extender with ``settings`` of its configuration on a cluster of its own."""
    config = ExtenderConfig(**{"debounce_seconds": 0.0, "drain_seconds": 2.0} | settings)
    async with (
        api_server() as (server, url),
        running_extender(server, url, config, clock, without) as running,
    ):
        yield running
