"""One control plane of each kind for the whole suite; every test gets a namespace of its own.

The same tests run against both: what the stand-ins claim is what the real programs do.
"""

import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from support.apiservers.fake_extender import FakeExtender
from support.clusters.cell import Cell

from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.assets import MINORS, AssetError
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.standins.simulated import Plane, SimulatedPlane

KINDS = ["simulated", *(pytest.param(minor, marks=pytest.mark.integration) for minor in MINORS)]


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=KINDS)
async def plane(request: pytest.FixtureRequest) -> AsyncIterator[Plane]:
    if request.param == "simulated":
        async with SimulatedPlane(bookmark_s=1.0) as simulated:
            yield simulated
    else:
        async with AsyncExitStack() as stack:
            try:
                real = await stack.enter_async_context(ControlPlane(Options(minor=request.param)))
            except AssetError as missing:
                pytest.skip(f"no real control plane: {missing}")
            yield real


@pytest_asyncio.fixture(loop_scope="session")
async def api(plane: Plane) -> AsyncIterator[Api]:
    async with plane.api() as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(api: Api) -> str:
    name = f"t-{uuid.uuid4().hex[:8]}"
    await api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@pytest.fixture
def pods(namespace: str) -> str:
    """Path of the pods of the test's namespace."""
    return f"/api/v1/namespaces/{namespace}/pods"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def extender(plane: Plane) -> AsyncIterator[FakeExtender]:
    """A scheduler with an extender that does what the running test tells it."""
    async with FakeExtender() as fake:
        path = _scheduler_config(plane, fake.url)
        await plane.start_scheduler(path)
        yield fake
        await plane.stop("kube-scheduler")


@pytest_asyncio.fixture(loop_scope="session")
async def cell(api: Api, namespace: str, extender: FakeExtender) -> AsyncIterator[Cell]:
    made = Cell(api, namespace, extender)
    for name in made.nodes:
        await made.add_node(name)
    await made.known()
    yield made
    for pod in (await api.get(made.pods))["items"]:
        await api.delete(f"{made.pods}/{pod['metadata']['name']}")
    for name in made.nodes:
        await api.delete(f"/api/v1/nodes/{name}")


def _scheduler_config(plane: Plane, url: str) -> Path:
    """Two extenders: one that must answer and binds, and an ignorable one that is away."""
    common = {"nodeCacheCapable": True, "httpTimeout": "1s"}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {
            "kubeconfig": str(plane.kubeconfig("kube-scheduler")),
            "qps": 1000,
            "burst": 1000,
        },
        "leaderElection": {"leaderElect": False},
        "extenders": [
            {
                **common,
                "urlPrefix": "http://127.0.0.1:1/away/",
                "filterVerb": "filter",
                "ignorable": True,
                "managedResources": [{"name": "example.com/away"}],
            },
            {
                **common,
                "urlPrefix": f"{url}/v1/",
                "filterVerb": "filter",
                "prioritizeVerb": "prioritize",
                "preemptVerb": "preempt",
                "bindVerb": "bind",
                "weight": 20,
                "managedResources": [{"name": "example.com/gpu"}],
            },
        ],
    }
    path = plane.directory / "contract-scheduler.yaml"
    path.write_text(yaml.safe_dump(config))
    return path
