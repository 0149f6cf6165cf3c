"""How long, and how much, room may be held for pods that are not stored yet. Pure.

::

    allowed? ──yes──► held ──a member is stored──► held for KEEP_S more, never past its life
       │ no             │                                │ all are stored
       ▼                │ time is up, members missing     ▼
     gated              ▼                              filled
                  came short ──► its payers are gated: 10 min, then 20, 40 … 4 h
                                         └── without another one for a day: as at first

The *payers* of a term are the namespace and, if a person creates the pods, that user, who may have
many namespaces. Asking again renews nothing, only a stored pod does. So a payer holds
``MOST_EXPECTED`` pods' room at most, each for ``life_s`` at most, and then nothing for at least
``FIRST_PENALTY_S``.

A gang that comes short because of a quota is gated meanwhile, with the others of its namespace:
gating costs one write for each pod, and no room.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

KEEP_S: Final = 20.0  # how long room is held after the first answer, or the last stored pod
MOST_EXPECTED: Final = 8_192  # pods of one payer that are not stored yet: two largest gangs
FIRST_PENALTY_S: Final = 600.0
MOST_PENALTY_S: Final = 4 * 3600.0
FORGIVEN_S: Final = 24 * 3600.0  # without a reservation that came short


class Payer(NamedTuple):
    """Who answers for reservations that come to nothing."""

    #: "namespace" or "user"
    kind: str
    name: str

    def __str__(self) -> str:
        return f"the {self.kind} {self.name}"


Payers = tuple[Payer, ...]
_OF_THE_CLUSTER: Final = "system:"  # begins the names of components, nodes and service accounts


def payers(namespace: str, user: str = "") -> Payers:
    """Return who answers for a gang. ``user``: who asks to create its pods, "" where not known.

    Controllers create pods for everybody, so they do not answer for them: all users of the Job
    controller would be gated for one of them.
    """
    own = Payer("namespace", namespace)
    if not user or user.startswith(_OF_THE_CLUSTER):
        return (own,)
    return own, Payer("user", user)


@dataclass(slots=True, eq=False)
class Term:
    """The time of one reservation, in seconds of the caller's clock."""

    #: who answers for it, the namespace first
    payers: Payers
    #: members that are not stored
    missing: int
    #: when its room is given back, unless a member is stored before
    until: float
    #: when it is given back in any case
    end: float

    @property
    def namespace(self) -> str:
        """The namespace of the gang."""
        return self.payers[0].name

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
    """All terms of one cluster, and the payers that may begin none for a while."""

    #: how long room is held at most from the beginning, in seconds
    life_s: float
    _open: set[Term] = field(default_factory=set)
    _penalties: dict[Payer, _Penalty] = field(default_factory=dict)

    def problem(self, whose: Payers, members: int, now: float) -> str:
        """Return why nothing may be reserved for a gang of that size now, "" where it may."""
        for payer in whose:
            penalty = self._penalties.get(payer)
            if penalty is not None and now < penalty.until:
                left = penalty.until - now
                return f"pods of {payer} that were expected did not come: gated for {left:.0f} s"
            if self.expected(payer) + members > MOST_EXPECTED:
                return f"more than {MOST_EXPECTED} pods of {payer} would be expected at a time"
        return ""

    def begin(self, whose: Payers, members: int, now: float) -> Term:
        """Return the term of a new reservation."""
        term = Term(whose, members, now + min(KEEP_S, self.life_s), now + self.life_s)
        self._open.add(term)
        return term

    def expected(self, payer: Payer) -> int:
        """Return the number of pods that a payer answers for: not stored, with room."""
        return sum(term.missing for term in self._open if payer in term.payers)

    def close(self, term: Term) -> None:
        """End a term that held nothing to the end, or all of whose members are stored."""
        self._open.discard(term)

    def came_short(self, term: Term, now: float) -> None:
        """End a term of which members did not come: its payers are gated for a while.

        Those that end while they are gated already began before it, and add nothing.
        """
        self._open.discard(term)
        for payer in term.payers:
            before = self._penalties.get(payer)
            if before is not None and now < before.until:
                continue
            twice = FIRST_PENALTY_S if before is None else 2 * before.seconds
            seconds = min(twice, MOST_PENALTY_S)
            self._penalties[payer] = _Penalty(now + seconds, seconds)

    def tidy(self, now: float) -> None:
        """Forget penalties that ended a day ago."""
        ended = [who for who, each in self._penalties.items() if each.until + FORGIVEN_S <= now]
        for payer in ended:
            del self._penalties[payer]
