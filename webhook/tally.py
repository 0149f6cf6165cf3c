"""Answers are counted, and what that comes to in metrics is added up when somebody looks.

One answer adds to some twenty counters, each of them five Python calls in prometheus-client and
together a third of all the calls that a shared answer took. Pods that are alike share their answer,
so it is enough to count how often each was given::

    answer given ─► times + 1 ──┬─ it makes room for a newer one ─► sums + times x amounts ─┐
                                └─ the registry is collected ─────► the same, of all        │
                                                                          │                 │
                                                                          └─► counters ◄────┘
"""

from collections import Counter as Sums
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Metric
from prometheus_client.registry import Collector

KEPT: Final = 64  # answers being counted at a time: templates whose pods come together

GivenT = TypeVar("GivenT")


@dataclass(slots=True)
class _Given(Generic[GivenT]):
    """``answer`` is held so that its identity stays its own."""

    answer: GivenT
    times: int = 0


class Tally(Collector, Generic[GivenT]):
    """Counts answers by their identity; ``amounts``: what one of them adds to which counters.

    It must be registered before these counters: a registry collects in that order. It shows
    nothing of its own, it brings them up to date.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        amounts: Callable[[GivenT], Iterable[tuple[Counter, int]]],
    ) -> None:
        self._amounts = amounts
        self._given: dict[int, _Given[GivenT]] = {}
        self._sums = Sums[Counter]()
        registry.register(self)

    def add(self, answer: GivenT) -> None:
        """Count an answer that was given."""
        given = self._given.get(id(answer))
        if given is None:
            given = self._given[id(answer)] = _Given(answer)
            if len(self._given) > KEPT:
                self._sum(self._given.pop(next(iter(self._given))))
        given.times += 1

    def count(self, counter: Counter) -> None:
        """Add one to a counter, when somebody looks."""
        self._sums[counter] += 1

    def collect(self) -> Iterable[Metric]:
        """Add what was counted to the counters."""
        for given in self._given.values():
            self._sum(given)
        for counter, amount in self._sums.items():
            counter.inc(amount)
        self._given.clear()
        self._sums.clear()
        return ()

    def _sum(self, given: _Given[GivenT]) -> None:
        for counter, amount in self._amounts(given.answer):
            self._sums[counter] += amount * given.times
