"""One eviction, counted and logged: the last resort of repairs and rollbacks."""

import logging

from extender.metrics import ExtenderMetrics
from muster.kube.client import KubeClient
from muster.kube.errors import APIError, KubeError
from muster.kube.writing.podwrites import PodRef, evict_pod

log = logging.getLogger(__name__)


async def evict(
    client: KubeClient, pod: PodRef, metrics: ExtenderMetrics, *, unbound: bool = False
) -> bool:
    """Evict the pod of this UID; return False if it stays, so that the caller tries again.

    ``unbound``: evict only if the pod has no node, whatever the watch has shown so far.
    """
    try:
        gone = await evict_pod(client, pod, unbound=unbound)
    except KubeError as error:
        outcome = "refused" if isinstance(error, APIError) else "failed"
        metrics.evictions.labels(outcome).inc()
        log.warning("eviction failed", extra={"pod": str(pod), "error": str(error)})
        return False
    if gone:
        metrics.evictions.labels("evicted").inc()
    return gone
