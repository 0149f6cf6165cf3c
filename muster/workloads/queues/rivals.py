"""What several sources say of the same things: of each thing the oldest source is right."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Seniority(NamedTuple):
    """The least is the oldest source; of two that came at once the name decides."""

    #: When the source was created, in seconds since the epoch.
    since: float
    #: Its name.
    source: str


class Rivals(Generic[KeyT, ValueT]):
    """All that is said, by the thing that it is said of. Finding who is right is one look-up."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._said: dict[KeyT, list[Seniority]] = {}
        self._values: dict[tuple[KeyT, str], ValueT] = {}

    def __iter__(self) -> Iterator[KeyT]:
        """Iterate over the things of which something is said."""
        return iter(self._said)

    def add(self, key: KeyT, by: Seniority, value: ValueT) -> None:
        """Take note of what a source says; of one thing it says one value."""
        if (key, by.source) not in self._values:
            insort(self._said.setdefault(key, []), by)
        self._values[key, by.source] = value

    def drop(self, key: KeyT, by: Seniority) -> None:
        """Forget what a source says of a thing, if it says anything."""
        if self._values.pop((key, by.source), None) is None:
            return
        said = self._said[key]
        del said[bisect_left(said, by)]
        if not said:
            del self._said[key]

    def values(self, key: KeyT) -> list[ValueT]:
        """Return everything that is said of a thing, the right first."""
        return [self._values[key, by.source] for by in self._said.get(key, ())]

    def right(self, key: KeyT) -> ValueT | None:
        """Return what the oldest source says of a thing, ``None``: nothing is said."""
        by = self.by(key)
        return None if by is None else self._values[key, by]

    def by(self, key: KeyT) -> str | None:
        """Return the oldest source that says something of a thing."""
        said = self._said.get(key)
        return said[0].source if said else None
