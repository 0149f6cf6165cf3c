"""What `kube` believes about the API server, asked of a real one.

::

    test ──► KubeClient, ListWatch, EventRecorder ──► kube-apiserver ──► etcd
             (users: observer, user)                  (started for each module)
"""

from collections.abc import AsyncIterator

import pytest_asyncio

from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from muster.kube.client import KubeClient
from muster.kube.http import auth


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    # Compacting every second makes "too old" happen; the default is five minutes.
    flags = ("--etcd-compaction-interval=1s",)
    options = Options(minor=minor, api_server_flags=flags)
    async with ControlPlane(options) as plane:
        yield plane


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with KubeClient(auth.load(plane.kubeconfig("observer"))) as client:
        yield client
