"""The life of the device plugin's process.

::

    SIGTERM ──► everything is cancelled ──► streams end, sockets go, the backend ends: within 2 s
"""

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Coroutine, Iterable
from contextlib import AsyncExitStack

from deviceplugin import wiring
from deviceplugin.backends.backend import Backend
from deviceplugin.cluster import podfeed
from deviceplugin.config import DevicePluginConfig
from deviceplugin.exporter import server
from deviceplugin.metrics import DevicePluginMetrics
from muster.kube.client import KubeClient
from muster.kube.http.auth import Auth
from muster.observability.health import Health
from muster.observability.metrics import new_registry

log = logging.getLogger(__name__)


async def run_device_plugin(
    config: DevicePluginConfig, backend: Backend, node: str, auth: Auth | None
) -> None:
    """Run until SIGTERM or SIGINT. ``auth``: None runs without an API server.

    Prints one JSON line once its pages are served.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    metrics = DevicePluginMetrics(new_registry())
    async with AsyncExitStack() as stack:
        stack.push_async_callback(backend.close)
        client = extender = None
        if auth is not None:
            await auth.current()  # credentials that cannot be read end the process, not a retry
            client = await stack.enter_async_context(KubeClient(auth))
            extender = podfeed.client_for(config.pods)
        if extender is not None:
            await stack.enter_async_context(extender)
        made = wiring.parts(wiring.NodeBasis(config, backend, node, metrics), client, extender)
        ready = Health({"kubelet": made.plugin.followed, "devices": made.plugin.known})
        cluster = made.cluster
        if cluster is not None:
            ready.add("node", cluster.problem)
        board = made.plugin.board
        host, port = await stack.enter_async_context(
            server.serving(config.exporter, board, metrics, live=Health(), ready=ready)
        )
        sys.stdout.write(json.dumps({"listening": f"http://{host}:{port}"}) + "\n")
        sys.stdout.flush()
        work = [made.plugin.run(), made.holders.run(), *(cluster.work() if cluster else ())]
        await _until(stop, work)


async def _until(stop: asyncio.Event, work: Iterable[Coroutine[object, object, object]]) -> None:
    """Run ``work`` until ``stop`` is set. An error of any of it is raised."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(each) for each in work]
        await stop.wait()
        for task in tasks:
            task.cancel()
