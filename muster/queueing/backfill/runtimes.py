"""How long a gang runs at most: as is written on it, else as others of its kind ran.

::

    written on it        muster.dev/max-run-time, a Job's deadline, …
      │ no
    its template         the ``quantile`` of the last 64 of that queue, namespace and template
      │ fewer than five
    its queue            likewise, whatever the template
      │ fewer than five
    unknown              it is taken never to end

A template is a name without its last numbers: ``train-17`` and ``train-18`` have one. A gang that
runs for longer than was learned shows as overrun (``expectedends``).
"""

import math
import re
from bisect import insort
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from muster.cluster.quota.queuespec import QueueName
from muster.cluster.tables.gangview import GangView
from muster.queueing.backfill.pastruns import PastRun, PastRuns, keeps_runs, past_run

LAST: Final = 64  # run times that are kept of each kind
ENOUGH: Final = 5  # run times from which something is learned
MOST_KINDS: Final = 4096  # the kind that was seen least recently is forgotten
_SERIAL: Final = re.compile(r"(?:[-._]?[a-z0-9]*[0-9][a-z0-9]*)+$")

Kind = tuple[str, ...]
"""Gangs that are taken to run alike: (queue, namespace, template), (queue, namespace)."""


def template_of(name: str) -> str:
    """Return a name without the numbers at its end; all of it where nothing would be left."""
    return _SERIAL.sub("", name) or name


def kinds_of(gang: GangView) -> Iterator[Kind]:
    """Yield the kinds of a gang, the narrowest first."""
    if gang.spec is not None:
        yield from _kinds(gang.queue, gang.spec.namespace, template_of(gang.spec.name))


def _kinds(queue: str, namespace: str, template: str) -> tuple[Kind, Kind]:
    return (queue, namespace, template), (queue, namespace)


class RunTimes:
    """The last run times of each kind, and the last runs of each queue that keeps them."""

    def __init__(self, quantile: float) -> None:
        """Begin without any. ``quantile``: share of the run times that are no longer, 0 to 1."""
        self._quantile = quantile
        #: (end in seconds since the epoch, seconds), the first end first
        self._kinds: OrderedDict[Kind, list[tuple[int, int]]] = OrderedDict()
        self._past = PastRuns()
        #: how many runs were learned; those that were restored are not counted
        self.learned = 0

    def learn(
        self, gang: GangView, seconds: float, ended_at: float, queue: QueueName | None = None
    ) -> None:
        """Take note that a gang ran for so long; ``ended_at``: seconds since the epoch.

        ``queue``: the queue that the gang named, ``None``: none is named so.
        """
        if gang.spec is None:
            return
        spec = gang.spec
        run = past_run(spec.namespace, template_of(spec.name), seconds, ended_at)
        self._put(gang.queue, run)
        if queue is not None and keeps_runs(queue):
            self._past.note(queue, run)
        self.learned += 1

    def kept(self, queue: QueueName) -> Sequence[PastRun]:
        """Return what a queue's object is to keep: its last runs, the first end first."""
        return self._past.of(queue)

    def restore(self, queue: QueueName, text: str, written: Iterable[PastRun]) -> None:
        """Take over what a queue's object kept, but for what is known.

        ``text``: how gangs name the queue.
        """
        for run in self._past.restore(queue, written):
            self._put(text, run)

    def forget(self, queue: QueueName, text: str) -> None:
        """Forget what was learned of a queue that is gone."""
        self._past.forget(queue)
        for kind in [kind for kind in self._kinds if kind[0] == text]:
            del self._kinds[kind]

    def _put(self, queue: str, run: PastRun) -> None:
        """Add a run to its kinds, in the order of ends."""
        for kind in _kinds(queue, run.namespace, run.template):
            last = self._kinds.pop(kind, None) or []
            insort(last, (run.ended_at, run.seconds))
            del last[:-LAST]
            self._kinds[kind] = last
        while len(self._kinds) > MOST_KINDS:
            self._kinds.popitem(last=False)

    def of(self, gang: GangView) -> float | None:
        """Return for how many seconds a gang runs at most, ``None``: unknown."""
        if gang.spec is None:
            return None
        if gang.spec.max_run_time is not None:
            return gang.spec.max_run_time
        learned = (self._learned(kind) for kind in kinds_of(gang))
        return next((seconds for seconds in learned if seconds is not None), None)

    def _learned(self, kind: Kind) -> float | None:
        last = self._kinds.get(kind, ())
        if len(last) < ENOUGH:
            return None
        times = sorted(seconds for _, seconds in last)
        return times[max(math.ceil(self._quantile * len(times)) - 1, 0)]
