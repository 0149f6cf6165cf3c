"""What the metrics of all programs share: the registry, buckets, and the event loop's lag.

Registries are made per process part, never the library's global one, so that two
clusters (or two tests) live in one process. Labels come from closed sets; pod, node and
gang names never become labels.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import generate_latest

REQUEST_BUCKETS_S: Final = (
    *(0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5),
)
"""From a plan hit (tens of microseconds) to kube-scheduler's default time-out (5 s)."""

WAIT_BUCKETS_S: Final = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)
"""From an idle cluster's answer to a day in the queue."""

LAG_PERIOD_S: Final = 0.25
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def new_registry() -> CollectorRegistry:
    """Return a registry with the process's own figures (memory, CPU, garbage collection).

    Without the series ``…_created`` that prometheus-client adds to each counter and histogram:
    Prometheus does not need them, and they would double the number of series.
    """
    disable_created_metrics()  # type: ignore[no-untyped-call]  # theirs
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def render(registry: CollectorRegistry) -> bytes:
    """Return the text exposition of everything registered."""
    return generate_latest(registry)


def histogram(
    registry: CollectorRegistry,
    name: str,
    text: str,
    labels: tuple[str, ...] = (),
    buckets: tuple[float, ...] = REQUEST_BUCKETS_S,
) -> Histogram:
    """Return a histogram registered in ``registry``."""
    return Histogram(name, text, labels, registry=registry, buckets=buckets)


def loop_lag(registry: CollectorRegistry) -> Gauge:
    """Return the gauge that ``watch_loop`` writes."""
    return Gauge(
        "muster_event_loop_lag_seconds",
        "How late the event loop ran a timer in the last period.",
        registry=registry,
    )


async def watch_loop(gauge: Gauge, clock: Callable[[], float]) -> None:
    """Measure for ever how late timers run; ``clock`` is monotonic, in seconds."""
    while True:
        due = clock() + LAG_PERIOD_S
        await asyncio.sleep(LAG_PERIOD_S)
        gauge.set(max(0.0, clock() - due))
