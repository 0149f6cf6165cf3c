"""The listeners of an event; ``deviceplugin.wiring`` shows who listens to what."""

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Listeners(Generic[P]):
    """Calls every listener of one kind of event, in the order in which they were added."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: list[Callable[P, None]] = []

    def listen(self, listener: Callable[P, None]) -> None:
        """Add ``listener``; it is called with every event from now on."""
        self._listeners.append(listener)

    def announce(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call every listener with this event. An error of a listener is the caller's."""
        for listener in self._listeners:
            listener(*args, **kwargs)
