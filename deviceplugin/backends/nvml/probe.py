"""A second child that looks once, whether a lost GPU is back: NVML looks only when it starts.

The first child stays meanwhile and hears the XIDs of the other GPUs; only when the second one has
found something new is the first replaced.
"""

import asyncio
from collections.abc import Mapping, Sequence

from deviceplugin.backends.nvml.link import Link, NvmlTimeouts
from deviceplugin.backends.nvml.wire import Look, Looked
from deviceplugin.errors import BackendError


async def answering(
    command: Sequence[str], environment: Mapping[str, str], patience: NvmlTimeouts
) -> frozenset[str]:
    """Return the UUIDs of the GPUs that answer a fresh child; none if the child itself fails."""
    try:
        link = await Link.start(command, environment, patience)
    except OSError:
        return frozenset()
    ready = asyncio.Event()
    running = asyncio.create_task(link.run(ready.set, lambda _: None))
    waiting = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        return await _look(link) if ready.is_set() else frozenset()
    finally:
        waiting.cancel()
        running.cancel()
        await asyncio.wait((running, waiting))
        await link.gone(lambda: None, wait=False)


async def _look(link: Link) -> frozenset[str]:
    try:
        looked = await link.ask(Look)
    except BackendError:
        return frozenset()
    if not isinstance(looked, Looked):
        return frozenset()
    return frozenset(gpu.uuid for gpu in looked.gpus if not gpu.lost)
