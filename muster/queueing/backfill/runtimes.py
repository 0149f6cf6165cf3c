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
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Final

from muster.cluster.tables.gangview import GangView

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
    if gang.spec is None:
        return
    queue, namespace = gang.queue, gang.spec.namespace
    yield queue, namespace, template_of(gang.spec.name)
    yield queue, namespace


class RunTimes:
    """The last run times of each kind."""

    def __init__(self, quantile: float) -> None:
        """Begin without any. ``quantile``: share of the run times that are no longer, 0 to 1."""
        self._quantile = quantile
        self._kinds: OrderedDict[Kind, deque[float]] = OrderedDict()

    def learn(self, gang: GangView, seconds: float) -> None:
        """Take note that a gang ran for so long."""
        for kind in kinds_of(gang):
            last = self._kinds.pop(kind, None) or deque(maxlen=LAST)
            last.append(max(seconds, 0.0))
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
        return sorted(last)[max(math.ceil(self._quantile * len(last)) - 1, 0)]
