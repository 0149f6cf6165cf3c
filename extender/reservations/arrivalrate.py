"""How fast the members of a gang come, one after the other, as was seen lately.

::

    the webhook asks for a gang ──► it is awaited ──► a member comes ──► how long after the one
                                          ▲                 │            before it: into the mean
                                          └─────────────────┤
                       all came, or nobody for FORGOTTEN_S ─┴──► it is not awaited any more

Pods with a reserved place start as they come (docs/adr/0033), so a gang runs in part until its last
member is made, and that is for its controller to say: kube-controller-manager sends 20 requests a
second by default, of all its controllers together (``--kube-api-qps``). Several gangs are made at a
time, so what counts is the pace within a gang, gated ones included.
"""

from dataclasses import dataclass
from typing import Final

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec

FIRST_GAP_S: Final = 1 / 20  # kube-controller-manager's own pace, until others are seen
LONGEST_GAP_S: Final = 1.0  # that counts: a longer pause is a stall, or one straggler, and no pace
FORGOTTEN_S: Final = 60.0
COMING_SHARE: Final = 1 / 3
"""Of the time for which a gang may run in part: members that come three times as slowly as those
before them, or a control plane that stands still for half a minute, must not make it partial."""
_WEIGHT: Final = 1 / 256  # of one arrival in the mean: the last gang of usual size counts most


@dataclass(slots=True)
class _Awaited:
    """A gang that is awaited."""

    #: how many members are to come
    left: int
    #: since when no member has come
    last: float
    begun: bool = False  # somebody came, so ``last`` is a member's time


class Arrivals:
    """Times are seconds of the caller's clock, which never falls."""

    def __init__(self) -> None:
        self.gap_s = FIRST_GAP_S
        """Mean time between two members of one gang."""
        self._awaited: dict[GangKey, _Awaited] = {}

    def expect(self, gang: GangKey, members: int, now: float) -> None:
        """Await the members of a gang whose first pod is about to be made."""
        if gang not in self._awaited:
            self._awaited[gang] = _Awaited(members, now)

    def came(self, gang: GangKey, members: int, now: float) -> None:
        """Note that some members came; of a gang that is not awaited nothing is learned."""
        awaited = self._awaited.get(gang)
        if awaited is None:
            return
        if awaited.begun:
            gap_s = min((now - awaited.last) / members, LONGEST_GAP_S)
            kept = (1 - _WEIGHT) ** members
            self.gap_s = kept * self.gap_s + (1 - kept) * gap_s
        awaited.begun, awaited.last = True, now
        awaited.left -= members
        if awaited.left <= 0:
            del self._awaited[gang]

    def seconds(self, members: int) -> float:
        """Return how long it takes from the first of so many members to the last."""
        return (members - 1) * self.gap_s

    def slowness(self, spec: GangSpec | None, partial_s: float) -> str:
        """Return why a gang would run in part for too long, until enough members are there.

        ``partial_s``: for how long it may run in part, in seconds. Returns "" where it would not.
        """
        needed = 0 if spec is None else spec.min_count
        wait_s, longest_s = self.seconds(needed), partial_s * COMING_SHARE
        if wait_s <= longest_s:
            return ""
        return (
            f"{needed} members would take {wait_s:.3g} s to come, as others did lately, and would "
            f"start as they come: {longest_s:.3g} s at most"
        )

    def tidy(self, now: float) -> None:
        """Forget gangs of which nobody has come for long: whoever makes them has given up."""
        self._awaited = {
            gang: awaited
            for gang, awaited in self._awaited.items()
            if now - awaited.last < FORGOTTEN_S
        }
