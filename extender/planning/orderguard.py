"""The order of gangs by their queues; an error in it does not end the planner's loop.

::

    BY QUEUES ──an error──► WITHOUT QUEUES: priority, then arrival ──PLAIN_S──► BY QUEUES

What a queue grants is asked for each gang by itself, in both states.
"""

import logging
from typing import Final

from extender.engine import Clock
from extender.metrics import ExtenderMetrics
from extender.timeslice import Pace
from muster.cluster.ids import GangKey
from muster.cluster.resumable import Steps
from muster.queueing.admission.waitingline import WaitingLine

log = logging.getLogger(__name__)

PLAIN_S: Final = 60.0


class OrderGuard:
    """Asks the queues for the order, if that raised no error lately."""

    def __init__(self, clock: Clock, metrics: ExtenderMetrics) -> None:
        self._clock = clock
        self._metrics = metrics
        #: until when gangs are ordered without queues, seconds since the epoch
        self._plain_until = 0.0

    async def opened(self, steps: Steps[WaitingLine], pace: Pace) -> WaitingLine | None:
        """Return a cycle's gangs in their order, ``None``: they are ordered without queues."""
        if self._clock() < self._plain_until:
            return None
        try:
            return await pace.drive(steps)
        except Exception:
            log.exception("queues not ordered")
            self._failed()
            return None

    def next(self, line: WaitingLine) -> GangKey | None:
        """Return the gang that is looked at next, ``None``: the cycle is over."""
        try:
            return line.next()
        except Exception:
            log.exception("queues not ordered")
            self._failed()
            return None

    def _failed(self) -> None:
        self._metrics.faults.labels("order").inc()
        self._plain_until = self._clock() + PLAIN_S
