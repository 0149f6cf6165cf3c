"""How long, and how much, room may be held for pods that are not stored yet. Pure.

::

    allowed? ──yes──► held ──a member is stored──► held for KEEP_S more, never past its life
       │ no             │                                │ all are stored
       ▼                │ time is up, members missing     ▼
     gated              ▼                              filled
                  came short ──► its namespace is gated: 10 min, then 20, 40 … 4 h
                                         └── without another one for a day: as at first

Asking again renews nothing, only a stored pod does. So a namespace holds ``MOST_EXPECTED`` pods'
room at most, each for ``life_s`` at most, and then nothing for at least ``FIRST_PENALTY_S``.

A gang that comes short because of a quota is gated meanwhile, with the others of its namespace:
gating costs one write for each pod, and no room.
"""

from dataclasses import dataclass, field
from typing import Final

KEEP_S: Final = 20.0  # how long room is held after the first answer, or the last stored pod
MOST_EXPECTED: Final = 8_192  # pods of one namespace that are not stored yet: two largest gangs
FIRST_PENALTY_S: Final = 600.0
MOST_PENALTY_S: Final = 4 * 3600.0
FORGIVEN_S: Final = 24 * 3600.0  # without a reservation that came short


@dataclass(slots=True, eq=False)
class Term:
    """The time of one reservation, in seconds of the caller's clock."""

    namespace: str
    #: members that are not stored
    missing: int
    #: when its room is given back, unless a member is stored before
    until: float
    #: when it is given back in any case
    end: float

    def stored(self, now: float) -> None:
        """Count a member that is stored: the others may take as long again."""
        self.missing -= 1
        self.until = min(now + KEEP_S, self.end)


@dataclass(slots=True)
class _Penalty:
    until: float
    seconds: float


@dataclass(slots=True)
class ReservationTerms:
    """All terms of one cluster, and the namespaces that may begin none for a while."""

    #: how long room is held at most from the beginning, in seconds
    life_s: float
    _open: set[Term] = field(default_factory=set)
    _penalties: dict[str, _Penalty] = field(default_factory=dict)

    def problem(self, namespace: str, members: int, now: float) -> str:
        """Return why a namespace may reserve for no gang of that size now, "" where it may."""
        penalty = self._penalties.get(namespace)
        if penalty is not None and now < penalty.until:
            left = penalty.until - now
            return f"pods of the namespace that were expected did not come: gated for {left:.0f} s"
        if self.expected(namespace) + members > MOST_EXPECTED:
            return f"more than {MOST_EXPECTED} pods of the namespace would be expected at a time"
        return ""

    def begin(self, namespace: str, members: int, now: float) -> Term:
        """Return the term of a new reservation."""
        term = Term(namespace, members, now + min(KEEP_S, self.life_s), now + self.life_s)
        self._open.add(term)
        return term

    def expected(self, namespace: str) -> int:
        """Return the number of pods of a namespace that are not stored and that have room."""
        return sum(term.missing for term in self._open if term.namespace == namespace)

    def close(self, term: Term) -> None:
        """End a term that held nothing to the end, or all of whose members are stored."""
        self._open.discard(term)

    def came_short(self, term: Term, now: float) -> None:
        """End a term of which members did not come: its namespace is gated for a while.

        Those that end while it is gated already began before it, and add nothing.
        """
        self._open.discard(term)
        before = self._penalties.get(term.namespace)
        if before is not None and now < before.until:
            return
        seconds = FIRST_PENALTY_S if before is None else min(2 * before.seconds, MOST_PENALTY_S)
        self._penalties[term.namespace] = _Penalty(now + seconds, seconds)

    def tidy(self, now: float) -> None:
        """Forget penalties that ended a day ago."""
        ended = [name for name, each in self._penalties.items() if each.until + FORGIVEN_S <= now]
        for name in ended:
            del self._penalties[name]
