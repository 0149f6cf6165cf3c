"""One eviction, counted and told: what repairs and roll-backs do when nothing gentler is left."""

import logging

from extender.metrics import ExtenderMetrics
from muster.kube.client import KubeClient
from muster.kube.errors import APIError, KubeError
from muster.kube.writing.podwrites import PodRef, evict_pod

log = logging.getLogger(__name__)


async def evict(
    client: KubeClient, pod: PodRef, metrics: ExtenderMetrics, *, unbound: bool = False
) -> bool:
    """Evict the pod of this UID; False where it stays, and whoever wants it gone tries again.

    ``unbound``: only while it has no node, whatever the watch has shown so far.
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
