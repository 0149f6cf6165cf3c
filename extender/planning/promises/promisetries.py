"""Which gangs are looked at for a promise: of each tree and priority a few in each *look*.

::

    look 1   A B C D │ E F wait for the next look
    look 2             E F │ all had their turn
    look 3   A B C D │ …

A look is ``refresh_seconds`` long. Where others may be made to give way, those that got nothing are
passed over until all had their turn: otherwise four gangs that can have no room would keep a fifth
one for ever from taking back what its queue is entitled to (kueue#6929).

Each priority has looks of its own. With one for all, an urgent gang would wait until a hundred
gangs of lower priority had their turn in vain.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from extender.engine import Clock
from muster.cluster.ids import GangKey
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.backfill.promise import StartClaim

MOST_TRIED: Final = 4  # gangs of a tree and priority that are looked at in a look


class TryClass(NamedTuple):
    """Gangs that share looks."""

    #: The root of their tree of queues, ``None``: they name no queue.
    root: QueueName | None
    #: Their priority.
    priority: int

    @classmethod
    def of(cls, claim: StartClaim) -> "TryClass":
        """Return that of a gang."""
        return cls(claim.root, claim.priority)


@dataclass(slots=True)
class _Look:
    """One tree and priority."""

    #: seconds since the epoch
    began: float
    tried: int = 0
    #: gangs that had their turn
    passed: set[GangKey] = field(default_factory=set)
    #: gangs that were refused a turn because others had theirs, the first one first
    behind: dict[GangKey, None] = field(default_factory=dict)
    #: gangs that came again before all had their turn, likewise
    early: dict[GangKey, None] = field(default_factory=dict)
    #: gangs that were looked at because they outrank the one that has the promise
    outranking: set[GangKey] = field(default_factory=set)

    def forget(self, gang: GangKey) -> None:
        """Have a gang wait for no turn."""
        self.behind.pop(gang, None)
        self.early.pop(gang, None)


@dataclass(slots=True)
class PromiseTries:
    """The looks of all trees and priorities."""

    clock: Clock
    #: how long a look is, in seconds
    seconds: float
    #: whether gangs that got nothing are passed over until all had their turn
    in_turn: bool = False
    #: gangs about which there was an error, and until when they are let alone (seconds since the
    #: epoch)
    _barred: dict[GangKey, float] = field(default_factory=dict)
    _looks: dict[TryClass, _Look] = field(default_factory=dict)
    #: when looks that are over were forgotten, seconds since the epoch
    _cleared: float = 0.0

    def is_full(self, tries: TryClass) -> bool:
        """Return whether enough gangs of a tree and priority were looked at lately."""
        return self._look(tries).tried >= MOST_TRIED

    def may(self, claim: StartClaim) -> bool:
        """Count a gang that is looked at; returns whether it may be."""
        look, gang = self._look(TryClass.of(claim)), claim.gang
        if self.in_turn and gang in look.passed:
            look.early[gang] = None
            return False
        if look.tried >= MOST_TRIED:
            look.behind[gang] = None
            return False
        look.forget(gang)
        look.passed.add(gang)
        look.tried += 1
        return True

    def may_outrank(self, claim: StartClaim) -> bool:
        """Return whether a gang may be looked at that outranks the one with the promise.

        Once in each look, however many others had their turn: where nobody knows when it starts,
        every event would have it looked at in vain.
        """
        look, gang = self._look(TryClass.of(claim)), claim.gang
        if gang in look.outranking:
            look.early[gang] = None
            return False
        look.forget(gang)
        look.outranking.add(gang)
        return True

    def given(self, claim: StartClaim) -> None:
        """Look at further gangs of a tree and priority: one of them was given a promise."""
        self._look(TryClass.of(claim)).tried = 0

    def forget(self, gang: GangKey) -> None:
        """Have a gang wait for no turn: it has its room, is gone, or waits for something else."""
        self._barred.pop(gang, None)
        for look in self._looks.values():
            look.forget(gang)

    def bar(self, gang: GangKey, until: float) -> None:
        """Let a gang alone until a time (seconds since the epoch): there was an error about it."""
        self._barred[gang] = until

    def is_barred(self, gang: GangKey) -> bool:
        """Return whether a gang is let alone now."""
        if self._barred.get(gang, 0.0) > self.clock():
            return True
        self._barred.pop(gang, None)
        return False

    def turns(self) -> Iterator[tuple[GangKey, float]]:
        """Yield gangs that wait for a turn, or are let alone, and until when (epoch seconds).

        Of each tree and priority a few, the first ones. Those behind them are yielded once these
        had their turn, or wait for none any more.
        """
        for look in self._looks.values():
            again = look.began + self.seconds
            for gang in (*islice(look.behind, MOST_TRIED), *islice(look.early, MOST_TRIED)):
                yield gang, again
        yield from self._barred.items()

    def _look(self, tries: TryClass) -> _Look:
        """Return the look of a tree and priority; a new one begins when it is over."""
        now, look = self.clock(), self._looks.get(tries)
        if look is not None and now - look.began < self.seconds:
            return look
        if now - self._cleared >= self.seconds:
            self._clear(now)
        self._looks[tries] = found = _Look(now)
        if look is not None:
            found.early = look.early
        if self.in_turn and look is not None and look.behind:
            found.passed, found.behind = look.passed, look.behind
        return found

    def _clear(self, now: float) -> None:
        """Forget looks that are over and in which no gang waits for a turn."""
        self._cleared = now
        self._looks = {
            tries: look
            for tries, look in self._looks.items()
            if look.behind or look.early or now - look.began < self.seconds
        }
