"""The one writer: every event goes through ``Engine.apply``, effects go to those who act.

The event loop runs one task at a time and ``apply`` never awaits, so no task ever sees
the state half changed and no lock is needed.
"""

import time
from collections.abc import Callable
from typing import get_args

from muster.cluster.effects import CapacityFreed, Effect
from muster.cluster.events import Event
from muster.cluster.state import ClusterState

Listener = Callable[[Effect], None]
Clock = Callable[[], float]


class SteadyClock:
    """Seconds since the epoch that never step: the wall clock is read once, then time is counted.

    Deadlines, back-offs and assembly windows are compared with times that were noted
    earlier. If somebody set the clock back by two hours in between, a gang that was to be
    left alone for a second would be left alone for two hours; set forward, every hold
    would expire at once.
    """

    def __init__(self, wall: Clock = time.time, monotonic: Clock = time.monotonic) -> None:
        self._monotonic = monotonic
        self._began = wall() - monotonic()

    def __call__(self) -> float:
        """Return the time."""
        return self._began + self._monotonic()


class Engine:
    """A ``ClusterState``, its clock, and listeners to effects."""

    def __init__(self, state: ClusterState, clock: Clock) -> None:
        self.state = state
        self.clock = clock
        self._listeners: dict[type[Effect], list[Listener]] = {
            kind: [] for kind in get_args(Effect)
        }

    def listen(self, listener: Listener, *kinds: type[Effect]) -> None:
        """Have ``listener`` called with effects of ``kinds``, all without; it returns at once."""
        for kind in kinds or self._listeners:
            self._listeners[kind].append(listener)

    def apply(self, event: Event) -> None:
        """Apply ``event`` now. ``PlanStale`` from a plan that no longer fits is passed on."""
        for effect in self.state.apply(event, now=self.clock()):
            for listener in self._listeners[type(effect)]:
                listener(effect)

    def make_way(self, event: Event) -> None:
        """Apply an event that makes room for the next one: no listener gets ``CapacityFreed``."""
        for effect in self.state.apply(event, now=self.clock()):
            if not isinstance(effect, CapacityFreed):
                for listener in self._listeners[type(effect)]:
                    listener(effect)
