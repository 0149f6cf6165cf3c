"""The one writer: every event goes through ``Engine.apply``, effects go to those who act.

The event loop runs one task at a time and ``apply`` never awaits, so nobody ever sees
the state half changed and no lock is needed.
"""

from collections.abc import Callable

from cluster.effects import Effect
from cluster.events import Event
from cluster.state import ClusterState

Listener = Callable[[Effect], None]
Clock = Callable[[], float]


class Engine:
    """A ``ClusterState``, the wall clock it is told the time by, and listeners to effects."""

    def __init__(self, state: ClusterState, clock: Clock) -> None:
        self.state = state
        self.clock = clock
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Have ``listener`` called with every effect; it must return at once."""
        self._listeners.append(listener)

    def apply(self, event: Event) -> None:
        """Apply ``event`` now. ``PlanStale`` from a plan that no longer fits is passed on."""
        for effect in self.state.apply(event, now=self.clock()):
            for listener in self._listeners:
                listener(effect)
