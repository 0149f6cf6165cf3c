"""Waiting for a state of the API, by watching."""

import asyncio
from collections.abc import Callable
from typing import Any

from support.machine.patience import PATIENCE_S

from loadtest.testbed.client.api import Api


async def eventually(
    api: Api, path: str, wanted: Callable[[dict[str, Any]], bool], *, seconds: float = PATIENCE_S
) -> dict[str, Any]:
    """Return the object at ``path`` as soon as ``wanted`` holds; ``TimeoutError`` otherwise."""
    folder, _, name = path.rpartition("/")
    async with asyncio.timeout(seconds):
        while True:
            obj = await api.get(path)
            if wanted(obj):
                return obj
            version = obj["metadata"]["resourceVersion"]
            async for _, changed in api.watch(
                folder, version, fieldSelector=f"metadata.name={name}"
            ):
                if wanted(changed):
                    return changed
