"""Several replicas of the extender beside one control plane, and the Service in front of them.

::

    kube-scheduler ──► Service ──► the replica with the leader label on its pod
                    (a TCP forwarder; connections that are open stay where they are)

No kubelet runs, so the replicas' own pods are only objects, and are not scheduled.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import yaml

from loadtest.testbed.client.api import JSON, Api, ApiFailed
from loadtest.testbed.controlplane.programs import Program, free_port
from loadtest.testbed.controlplane.wallclock import WallClock
from loadtest.testbed.standins.reflector import Change, Reflector
from loadtest.testbed.standins.simulated import Plane
from muster.kube import names

NAMESPACE: Final = "muster-system"
LEASE: Final = "muster-extender"
LEASE_PATH: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{LEASE}"
OWN_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_PATIENCE_S: Final = 60.0


class Replica:
    """One extender process and the pod it believes to run in."""

    def __init__(
        self,
        plane: Plane,
        name: str,
        settings: Mapping[str, Any],
        server: str | None,
        clock: WallClock | None,
    ) -> None:
        """``server``: where it finds the API server, if not at the plane; ``clock``: its own."""
        self.name, self.port = name, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        config = plane.directory / f"{name}.yaml"
        listen = {"listen": {"port": self.port}}
        config.write_text(
            yaml.safe_dump({"kind": "ExtenderConfiguration", **settings, **listen}), "utf-8"
        )
        command: list[str | Path] = [sys.executable, "-m", "extender", "--config", config]
        command += ["--kubeconfig", plane.kubeconfig("muster-extender", server=server)]
        self.program = Program(
            name,
            command,
            directory=plane.directory,
            ready=self._ready,
            env={"POD_NAME": name, "POD_NAMESPACE": NAMESPACE},
        )
        if clock is not None:
            self.program.command = clock.command(self.program.command)

    async def start(self) -> None:
        """Start it and wait until it is ready."""
        self.program.start()
        await self.program.wait_ready()

    async def ended(self) -> None:
        """Wait until the process has ended by itself."""
        async with asyncio.timeout(_PATIENCE_S):
            while self.program.running:  # noqa: ASYNC110  a child sets no Event
                await asyncio.sleep(0.05)

    async def _ready(self) -> bool:
        try:
            async with Api(self.url) as api:
                await api.get("/readyz")
        except (ApiFailed, aiohttp.ClientError, TimeoutError):
            return False
        return True


class Service:
    """Forwards one port to the replica that is labelled leader; others are refused."""

    def __init__(self, api: Api, ports: Mapping[str, int]) -> None:
        """``ports``: name of a replica's pod → its port; ``api``: to see the labels with."""
        self._ports = dict(ports)
        self._labelled: set[str] = set()
        self._reflector = Reflector(
            api,
            OWN_PODS,
            self._saw,
            labelSelector=f"{names.LEADER}={LEASE}",
        )
        self.port = free_port()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._reflector.run())
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._server.close()

    @property
    def leader(self) -> str:
        """Name of the replica that is labelled, "" if there is not exactly one."""
        return next(iter(self._labelled)) if len(self._labelled) == 1 else ""

    def _saw(self, change: Change, pod: JSON) -> None:
        name = str(pod["metadata"]["name"])
        (self._labelled.add if change is Change.PRESENT else self._labelled.discard)(name)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            port = self._ports[next(iter(self._labelled))]
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except (StopIteration, OSError):
            writer.transport.abort()
            return
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(64 * 1024):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.transport.abort()


def own_pod(name: str) -> JSON:
    """Return the pod that a replica believes to run in."""
    containers = [{"name": "extender", "image": "muster"}]
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": "muster-extender"}},
        "spec": {"schedulerName": "none", "containers": containers},
    }
