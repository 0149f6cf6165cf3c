"""Bound pods as the API server has them: their names are not in the model, but their nodes are."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.kube.resources import PODS
from muster.kube.wire import Pod

log = logging.getLogger(__name__)

PERIOD_S: Final = 1.0
LISTS_PER_S: Final = 5  # a rack that loses its power takes some seconds to be told of
PAUSE_S: Final = 10.0  # after a failure


async def pods_on(client: KubeClient, node: str) -> Sequence[Pod]:
    """Return the pods of a node. Raises ``KubeError``."""
    return await client.list(PODS, fieldSelector=f"spec.nodeName={node}")


async def tell_for_ever(tell: Callable[[], Awaitable[object]], failed: str) -> None:
    """Have bound pods told of what is due, about ``LISTS_PER_S`` nodes at a time.

    ``tell`` keeps what it could not tell when it raises ``KubeError``; ``failed``: what is logged.
    """
    while True:
        await asyncio.sleep(PERIOD_S)
        try:
            await tell()
        except KubeError as error:
            log.warning(failed, extra={"error": str(error)})
            await asyncio.sleep(PAUSE_S)
