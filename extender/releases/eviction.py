"""Evictions, counted and logged: of broken pins, of rollbacks, and of gangs that give way."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Final, TypeVar

from extender.metrics import ExtenderMetrics
from muster.cluster.ids import PodUid
from muster.kube.client import KubeClient
from muster.kube.errors import APIError, KubeError, TooManyRequests
from muster.kube.resources import PODS
from muster.kube.translation.translate import pod_uid
from muster.kube.wire import Pod
from muster.kube.writing.podwrites import PodRef, evict_pod

log = logging.getLogger(__name__)

AT_ONCE: Final = 8  # evictions, or gangs that end, that are under way together
S = TypeVar("S")
T = TypeVar("T")


async def why_stays(
    client: KubeClient, pod: PodRef, metrics: ExtenderMetrics, *, unbound: bool = False
) -> str:
    """Evict the pod of this UID; return why it stays, "" if it goes.

    ``unbound``: evict only if the pod has no node, whatever the watch has shown so far.
    """
    try:
        gone = await evict_pod(client, pod, unbound=unbound)
    except KubeError as error:
        outcome = "refused" if isinstance(error, APIError) else "failed"
        metrics.evictions.labels(outcome).inc()
        log.warning("eviction failed", extra={"pod": str(pod), "error": str(error)})
        protects = "a disruption budget protects it: "
        return f"{protects if isinstance(error, TooManyRequests) else ''}{error}"
    if not gone:
        return "it has a node"
    metrics.evictions.labels("evicted").inc()
    return ""


async def evict(
    client: KubeClient, pod: PodRef, metrics: ExtenderMetrics, *, unbound: bool = False
) -> bool:
    """Evict as ``why_stays``; return False if the pod stays, so that the caller tries again."""
    return not await why_stays(client, pod, metrics, unbound=unbound)


async def at_once(step: Callable[[S], Awaitable[T]], those: Iterable[S]) -> list[T]:
    """Return what a step returns for each, in their order; ``AT_ONCE`` are under way together.

    An error of one step is raised, and no other one goes on or begins.
    """
    slots = asyncio.Semaphore(AT_ONCE)

    async def run(one: S) -> T:
        async with slots:
            return await step(one)

    tasks = [asyncio.ensure_future(run(one)) for one in those]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def evict_each(evicts: Callable[[T], Awaitable[bool]], pods: Sequence[T]) -> bool:
    """Evict pods, several at once; returns whether all of them go."""
    return all(await at_once(evicts, pods))


async def pods_of(client: KubeClient, namespace: str, uids: Collection[PodUid]) -> list[Pod]:
    """Read pods of a namespace from the API server: the model has no names of bound pods.

    It may have some 100,000 pods, so no more than a page of it is held. Raises ``KubeError``.
    """
    found: list[Pod] = []
    async for page in client.pages(PODS, namespace=namespace):
        if page.anew:
            found.clear()
        found += [pod for pod in page.items if pod_uid(pod.metadata.uid) in uids]
    return found
