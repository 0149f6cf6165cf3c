"""The judgement at the end of every integration test: of API objects alone, without Muster."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.machine.patience import PATIENCE_S

from loadtest.testbed.client.api import Api
from loadtest.testbed.oracles.checker import Checker
from loadtest.testbed.standins.reflector import Reflector


@asynccontextmanager
async def judged(api: Api) -> AsyncIterator[Checker]:
    """Watch nodes and pods during the block; afterwards expect no gang in part, no room doubled.

    What lasts for a moment only is seen too: a node given away twice counts once it happened.
    """
    checker = Checker()
    nodes = Reflector(
        api, "/api/v1/nodes", lambda change, node: checker.node(change, node, time.monotonic())
    )
    pods = Reflector(
        api, "/api/v1/pods", lambda change, pod: checker.pod(change, pod, time.monotonic())
    )
    tasks = [asyncio.create_task(reflector.run()) for reflector in (nodes, pods)]
    try:
        await asyncio.gather(nodes.synced.wait(), pods.synced.wait())
        yield checker
        await asyncio.wait_for(_caught_up(api, checker), PATIENCE_S)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert checker.partial_gangs(time.monotonic(), at_end=True) == []
    assert checker.double_allocations() == []


async def _caught_up(api: Api, checker: Checker) -> None:
    """Wait until the checker has seen every binding that the API server has."""
    pods, _ = await api.list_all("/api/v1/pods")
    bound = {str(pod["metadata"]["uid"]) for pod in pods if pod["spec"].get("nodeName")}
    while not bound <= checker.bound_once:  # noqa: ASYNC110  the checker has no Event
        await asyncio.sleep(0.05)
