"""The only writer of the state: every event goes through ``Engine.apply``, effects to listeners.

The event loop runs one task at a time and ``apply`` never awaits. So no task ever sees a half
changed state, and no lock is needed.
"""

import time
from collections.abc import Callable
from typing import get_args

from extender.story.entries import NOTHING
from extender.story.story import Story
from muster.cluster.effects import CapacityFreed, Effect
from muster.cluster.events import Event
from muster.cluster.state import ClusterState

Listener = Callable[[Effect], None]
Clock = Callable[[], float]


class SteadyClock:
    """Seconds since the epoch without steps: the wall clock is read once, then time is counted.

    Deadlines, back-offs and assembly windows are compared with earlier times. If the wall clock
    were set back by two hours in between, a gang deferred for a second would be deferred for two
    hours. If it were set forward, every hold would expire at once.

    Most earlier times are timestamps of the API server, so ``ServerTime`` moves the clock to that
    of the API server before the cluster is listed.
    """

    def __init__(self, wall: Clock = time.time, monotonic: Clock = time.monotonic) -> None:
        self._monotonic = monotonic
        self._began = wall() - monotonic()

    def __call__(self) -> float:
        """Return the time."""
        return self._began + self._monotonic()

    def move(self, seconds: float) -> None:
        """Set the clock, once and before anything is compared with it (``ServerTime``)."""
        self._began += seconds


class Engine:
    """A ``ClusterState``, its clock, and listeners to effects."""

    def __init__(self, state: ClusterState, clock: Clock, story: Story | None = None) -> None:
        """Note every event that changes the state in ``story``, with its cause."""
        self.state = state
        self.clock = clock
        self.story = story or Story(0)
        self._cause = NOTHING  # the event that listeners are being called for
        self._listeners: dict[type[Effect], list[Listener]] = {
            kind: [] for kind in get_args(Effect)
        }

    def listen(self, listener: Listener, *kinds: type[Effect]) -> None:
        """Have ``listener`` called with effects of ``kinds`` (none: of all). It must not wait."""
        for kind in kinds or self._listeners:
            self._listeners[kind].append(listener)

    def apply(self, event: Event, cause: int = NOTHING, *, makes_way: bool = False) -> None:
        """Apply ``event`` now. Raises ``PlanStale`` for a plan that no longer fits.

        ``cause``: the number of its cause in the story, if that is known.
        ``makes_way``: the next event takes the freed room, so no listener gets ``CapacityFreed``.
        """
        state, number, now = self.state, NOTHING, self.clock()
        before = state.generation
        effects = state.apply(event, now=now)
        if makes_way:
            effects = [effect for effect in effects if not isinstance(effect, CapacityFreed)]
        if state.generation != before and self.story.most:
            number = self.story.note(event, effects, now, cause or self._cause)
        outer, self._cause = self._cause, number
        try:
            for effect in effects:
                for listener in self._listeners[type(effect)]:
                    listener(effect)
        finally:
            self._cause = outer

    def make_way(self, event: Event) -> None:
        """Apply an event that frees room for the next event: no listener gets ``CapacityFreed``."""
        self.apply(event, makes_way=True)
