"""What the scheduler's stand-in believes can be asked for while it runs.

::

    n0: 32 CPUs, "small" on it        "large" asks for 64 and waits
"""

import json
from pathlib import Path
from typing import Any

import aiohttp
from support.extenders.extenders import eventually

from loadtest.testbed.client import nodes, pods
from loadtest.testbed.controlplane import schedulerconfig
from loadtest.testbed.controlplane.controlplane import SCHEDULER
from loadtest.testbed.standins.simulated import SimulatedPlane

PODS = "/api/v1/namespaces/default/pods"


async def ask(session: aiohttp.ClientSession, url: str) -> tuple[int, Any]:
    async with session.get(url) as reply:
        return reply.status, json.loads(await reply.read())


async def told_address(log: Path) -> str:
    """Return where the stand-in says it listens; it does so a moment after ``/readyz`` answers."""

    async def told() -> bool:
        return len(first_lines(log)) > 0

    await eventually(told)
    url: str = json.loads(first_lines(log)[0])["listening"]
    return url


def first_lines(log: Path) -> list[str]:
    """Return the lines that are written to their end."""
    return [line for line in log.read_text("utf-8").splitlines(keepends=True) if line[-1] == "\n"]


async def test_who_waits_why_and_who_is_where_can_be_asked_for() -> None:
    async with SimulatedPlane() as plane, plane.api("admin") as api:
        await nodes.create_nodes(api, [nodes.node("n0", resources={"cpu": "32", "pods": "110"})])
        config = schedulerconfig.write(
            "bare", directory=plane.directory, kubeconfig=plane.kubeconfig(SCHEDULER)
        )
        await plane.start_scheduler(config)
        await api.create(PODS, pods.pod("small", cpu="2", memory="0"))
        await api.create(PODS, pods.pod("large", cpu="64", memory="0"))
        url = await told_address(plane.program(SCHEDULER).log)
        async with aiohttp.ClientSession() as session:

            async def rejected() -> bool:
                _, queue = await ask(session, f"{url}/queue")
                return bool(queue["rejected_by"]) and queue["places"]["in flight"] == 0

            await eventually(rejected)
            _, queue = await ask(session, f"{url}/queue")
            assert queue["rejected_by"] == {"NodeResourcesFit": 1}
            assert [each["pod"] for each in queue["pods"]] == ["default/large"]
            assert await ask(session, f"{url}/nodes/n0") == (200, ["default/small"])
            assert await ask(session, f"{url}/nodes/n1") == (404, None)
