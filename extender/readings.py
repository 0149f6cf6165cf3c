"""What the state's own gauges show, read when they are scraped."""

from collections.abc import Callable

from extender.engine import Clock
from extender.metrics import Readings
from extender.planning.planner import Planner
from extender.releases.rollback import PartialGangs
from extender.watchover.census import Census


def readings(
    census: Census,
    planner: Planner,
    partial: PartialGangs,
    backlog: Callable[[], int],
    clock: Clock,
) -> Readings:
    """Return where each gauge is read. ``backlog``: changes received and not applied yet."""

    def oldest_s() -> float:
        since = census.queue.oldest
        return 0.0 if since is None else max(0.0, clock() - since)

    return Readings(
        gangs=lambda: census.gangs,
        holds=lambda: census.holds,
        queued_gangs=lambda: census.queue.gangs,
        queued_pods=lambda: census.queue.pods,
        oldest_s=oldest_s,
        waiting=lambda: planner.waiting,
        backlog=backlog,
        partial=lambda: partial.reported,
        spares=lambda: census.spares,
    )
