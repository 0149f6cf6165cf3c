"""kwok as the kubelet of every node: it renews their Leases and carries their pods along.

::

    kwok ── Lease of every node, each 10 s ──►┐
     │                                        ├── API server
     └── bound ► Running ► Succeeded, gone ──►┘
                              ▲
    Kubelet.finish ── annotation, as a container that ends by itself

Its stages are data: ``kwokstages.yaml``.
"""

import asyncio
from pathlib import Path
from typing import Final

import aiohttp

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.controlplane.assets import ensure_kwok
from loadtest.testbed.controlplane.programs import Program, free_port
from loadtest.testbed.standins.kubelet import Write

MOST_NODES: Final = 5_000
"""A Lease each every ten seconds: at this size they are 500 writes a second."""
DONE: Final = "loadtest.testbed.deployment.muster.dev/done"  # kwokstages.yaml has it, too
USER: Final = "kwok"  # loadtest.testbed.controlplane.credentials
_LEASE_S: Final = 40  # the kubelet's nodeLeaseDurationSeconds; it renews after a quarter of that
STAGES: Final = Path(__file__).parent / "kwokstages.yaml"


def write_of(phase: str) -> Write | None:
    """Return the write that ends a pod; ``None`` for "Running", which kwok itself writes."""
    return None if phase == "Running" else ("", {"metadata": {"annotations": {DONE: "true"}}})


async def program(directory: Path, kubeconfig: Path) -> Program:
    """Return kwok, built if need be, not started. Raises ``AssetError``."""
    port = free_port()
    command: list[str | Path] = [
        await asyncio.to_thread(ensure_kwok),
        f"--kubeconfig={kubeconfig}",
        f"--config={STAGES}",
        "--manage-all-nodes",
        f"--node-lease-duration-seconds={_LEASE_S}",
        f"--server-address=127.0.0.1:{port}",
    ]
    return Program("kwok", command, directory=directory, ready=lambda: _ready(port))


async def _ready(port: int) -> bool:
    try:
        async with Api(f"http://127.0.0.1:{port}") as api:
            await api.get("/readyz")
    except (ApiFailed, aiohttp.ClientError, TimeoutError):
        return False
    return True
