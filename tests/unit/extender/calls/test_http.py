"""Bad input: the wire's own error or a 4xx, no traceback, nothing changed."""

import io
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from aiohttp.test_utils import TestClient, TestServer
from support.apiservers.apifaults import api_server
from support.extenders.extenders import World, go_args, world

from extender.app import make_app
from extender.config.election import LeaderElection
from extender.config.settings import LARGEST_CLUSTER, ExtenderConfig
from extender.leadership.candidacy import stand
from extender.leadership.ownpod import PodName
from extender.wiring.extender import Extender
from loadtest.testbed.client.pods import Gang
from muster.kube.client import KubeClient
from muster.kube.http import auth

VERBS = ("filter", "prioritize", "preempt", "bind")
UID = "0f3c8a52-6a0e-4b5e-9d0e-2f6f0d6c1a11"


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world() as running:
        await running.nodes({"r1": 1})
        yield running


async def post(cluster: World, verb: str, body: bytes) -> tuple[int, str]:
    async with cluster.http.post(f"/v1/extender/{verb}", data=body) as response:
        return response.status, await response.text()


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"nonsense",
        b'{"Pod":[],"NodeNames":["a"],"PodName":1,"NodeNameToMetaVictims":[]}',
        b'{"Pod":{"metadata":{"uid":7}},"NodeNames":["a"],"Node":{}}',
        b'{"Pod":{"metadata":{"uid":"u","labels":[]}},"NodeNames":["a"]}',
        b"[" * 100_000,
        b"\xff\xfe\x00",
    ],
)
async def test_a_body_that_is_not_the_wires_is_400_and_changes_nothing(
    cluster: World, verb: str, body: bytes
) -> None:
    generation = cluster.extender.engine.state.generation
    status, text = await post(cluster, verb, body)
    assert status == 400
    assert json.loads(text)["Error"]
    assert "Traceback" not in text
    assert cluster.extender.engine.state.generation == generation


@pytest.mark.parametrize("value", ["a", {"a": 1}, [1], [None], 7, True])
async def test_node_names_of_the_wrong_type_are_400(cluster: World, value: object) -> None:
    body = json.dumps({"Pod": {"metadata": {"uid": UID}}, "NodeNames": value}).encode()
    status, text = await post(cluster, "filter", body)
    assert status == 400
    assert "NodeNames" in text


async def test_a_body_above_the_limit_is_413() -> None:
    limit = LARGEST_CLUSTER * 8
    async with world(body_limit_bytes=limit) as running:
        status, text = await post(running, "filter", b"x" * (limit + 1))
        assert status == 413
        assert "Traceback" not in text


async def test_the_largest_cluster_with_long_names_fits_the_default_limit(cluster: World) -> None:
    names = [f"node-{i:06d}.{'a' * 180}" for i in range(LARGEST_CLUSTER)]
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": UID}, "spec": {}}
    body = io.BytesIO(go_args(pod, names))
    async with cluster.http.post("/v1/extender/filter", data=body) as response:
        assert response.status == 200
        assert len((await response.json())["NodeNames"]) == LARGEST_CLUSTER


@pytest.mark.parametrize("path", ["/v1/extender/filter", "/v1/explain/a"])
async def test_wrong_methods_and_paths_are_4xx(cluster: World, path: str) -> None:
    async with cluster.http.get(path) as response:
        assert response.status in (404, 405)


async def test_before_the_cluster_is_listed_nothing_is_guessed() -> None:
    async with api_server() as (server, url), KubeClient(auth.fixed(url)) as client:
        extender = Extender(ExtenderConfig(), client)
        del server
        jobs = dict(extender.parts.jobs)
        extender.parts.jobs.clear()  # nothing is started, so nothing is listed
        async with TestClient(TestServer(make_app(extender.parts))) as http:
            pod = {"metadata": {"name": "p", "namespace": "d", "uid": UID}, "spec": {}}
            args = {"Pod": pod, "NodeNames": ["a"]}
            async with http.post("/v1/extender/filter", json=args) as response:
                assert response.status == 200
                assert "listed" in (await response.json())["Error"]
            for verb in ("prioritize", "preempt"):
                async with http.post(f"/v1/extender/{verb}", json=args) as response:
                    assert response.status == 503
            binding = {"PodName": "p", "PodNamespace": "d", "PodUID": UID, "Node": "a"}
            async with http.post("/v1/extender/bind", json=binding) as response:
                assert response.status == 200
                assert "listed" in (await response.json())["Error"]
            async with http.get("/readyz") as response:
                assert response.status == 500
                assert "pods" in await response.text()
            async with http.get("/livez") as response:
                assert response.status == 200
        assert jobs


async def test_health_and_metrics_are_served_once_listed(cluster: World) -> None:
    async with cluster.http.get("/readyz") as response:
        assert (response.status, await response.text()) == (200, "ok")
    async with cluster.http.get("/readyz?verbose") as response:
        assert "[+]listed ok" in await response.text()
    await cluster.gang(Gang("g", 1))
    await cluster.released(["g-0"])
    async with cluster.http.get("/metrics") as response:
        text = await response.text()
    assert 'muster_releases_total{outcome="released"} 1.0' in text
    assert "process_resident_memory_bytes" in text


async def test_nothing_is_served_or_said_for_a_benchmark(cluster: World) -> None:
    async with cluster.http.post("/v1/echo", data=b"x") as response:
        assert response.status == 404
    async with cluster.http.post("/v1/extender/filter", data=b"{}") as response:
        assert "Server-Timing" not in response.headers


@pytest.mark.parametrize("verb", VERBS)
async def test_a_standby_answers_503_to_every_verb_and_closes_the_connection(verb: str) -> None:
    async with api_server() as (_, url), AsyncExitStack() as stack:
        client = await stack.enter_async_context(KubeClient(auth.fixed(url)))
        candidacy = await stand(
            stack, LeaderElection(), auth.fixed(url), PodName("muster-system", "muster-0")
        )
        extender = Extender(ExtenderConfig(), client, candidacy=candidacy)
        extender.parts.jobs.clear()
        extender.sync.synced.set()
        http = await stack.enter_async_context(TestClient(TestServer(make_app(extender.parts))))
        async with http.post(f"/v1/extender/{verb}", json={}) as response:
            assert response.status == 503
            assert response.headers["Connection"] == "close"
            assert (await response.json())["Error"] == "muster: this replica does not lead"
        async with http.get("/readyz") as response:
            assert response.status == 200
        async with http.get("/v1/status") as response:
            assert (await response.json())["leader"] is False
