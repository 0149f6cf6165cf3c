"""Gauges of queues, read when scraped: what each uses, has and borrows, and how many wait.

A series for each queue and resource would grow with the cluster, so only the first queues by name
are shown, ``MOST_QUEUES`` of them; the statuses of the objects show all.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from muster.cluster.quota.cells import UNLIMITED, Cell
from muster.cluster.quota.queuespec import QueueName

MOST_QUEUES: Final = 200
_LABELS: Final = ("queue", "flavor", "resource")


@dataclass(frozen=True, slots=True)
class CellGauge:
    """One resource of a queue, in base units: thousandths of a CPU, bytes, pieces."""

    cell: Cell
    #: with all queues below it
    used: int
    entitled: int
    borrowed: int
    #: what was used on average, ``None``: past use does not count
    average: float | None = None


@dataclass(frozen=True, slots=True)
class QueueGauge:
    """One queue."""

    queue: QueueName
    #: gangs that wait
    waiting: int
    cells: tuple[CellGauge, ...]


class QueueGauges(Collector):
    """Gauges of the first queues by name; none on a standby."""

    def __init__(self, read: Callable[[int], Iterable[QueueGauge]]) -> None:
        """``read`` returns at most so many queues, as they were at the last look."""
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """Yield the families; called by the registry on every scrape."""
        used = _family("muster_queue_used", "What a queue and all below it use, in base units.")
        entitled = _family("muster_queue_entitled", "What a queue is entitled to.")
        borrowed = _family("muster_queue_borrowed", "What a queue uses above that.")
        average = _family("muster_queue_average_used", "What a queue used on average, lately.")
        text = "Complete gangs that wait in a queue."
        waiting = GaugeMetricFamily("muster_queue_waiting", text, labels=("queue",))
        for row in self._read(MOST_QUEUES):
            waiting.add_metric((row.queue,), row.waiting)
            for one in row.cells:
                labels = (row.queue, one.cell.flavor, one.cell.resource)
                used.add_metric(labels, one.used)
                borrowed.add_metric(labels, one.borrowed)
                if one.average is not None:
                    average.add_metric(labels, one.average)
                if one.entitled < UNLIMITED:
                    entitled.add_metric(labels, one.entitled)
        return (used, entitled, borrowed, average, waiting)


def _family(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=_LABELS)
