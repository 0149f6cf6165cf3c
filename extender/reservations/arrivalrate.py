"""How fast the members of a gang arrive, one after the other, as measured lately.

::

    the webhook asks for a gang ──► it is awaited ──► a member arrives ──► the time since the one
                                          ▲                 │              before it: into the mean
                                          └─────────────────┤
                  all arrived, or none for FORGOTTEN_S ─────┴──► it is not awaited any more

Pods with a reserved place start when they are created (docs/adr/0033), so a gang runs in part until
its last member is created. How long that takes depends on the controller: kube-controller-manager
sends 20 requests a second by default, for all its controllers together (``--kube-api-qps``). Since
several gangs are created at the same time, the time between members of one gang is measured, gated
gangs included.
"""

from dataclasses import dataclass
from typing import Final

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec

FIRST_GAP_S: Final = 1 / 20  # kube-controller-manager's own pace, until others are seen
LONGEST_GAP_S: Final = 1.0  # a longer gap counts as this: it is a stall, or one late pod
FORGOTTEN_S: Final = 60.0
COMING_SHARE: Final = 1 / 3
"""The share of the time for which a gang may run in part that its arrival may take. The rest is a
reserve: a gang must not become partial if its members arrive three times as slowly as those before
them, or if the control plane stalls for half a minute."""
_WEIGHT: Final = 1 / 256  # of one arrival in the mean: the last gang of usual size counts most


@dataclass(slots=True)
class _Awaited:
    """A gang that is awaited."""

    #: number of members that have not arrived
    left: int
    #: since when no member has arrived
    last: float
    #: whether a member has arrived, so that ``last`` is a member's time
    begun: bool = False


class Arrivals:
    """The mean time between two members. Times are seconds of the caller's steady clock."""

    def __init__(self) -> None:
        #: mean time between two members of one gang
        self.gap_s = FIRST_GAP_S
        self._awaited: dict[GangKey, _Awaited] = {}

    def expect(self, gang: GangKey, members: int, now: float) -> None:
        """Await the members of a gang; its first pod is about to be created."""
        if gang not in self._awaited:
            self._awaited[gang] = _Awaited(members, now)

    def arrived(self, gang: GangKey, members: int, now: float) -> None:
        """Note that some members arrived; a gang that is not awaited is ignored."""
        awaited = self._awaited.get(gang)
        if awaited is None:
            return
        if awaited.begun:
            gap_s = min((now - awaited.last) / members, LONGEST_GAP_S)
            old = (1 - _WEIGHT) ** members
            self.gap_s = old * self.gap_s + (1 - old) * gap_s
        awaited.begun, awaited.last = True, now
        awaited.left -= members
        if awaited.left <= 0:
            del self._awaited[gang]

    def seconds(self, members: int) -> float:
        """Return how long it takes from the first of ``members`` to the last."""
        return (members - 1) * self.gap_s

    def slowness(self, spec: GangSpec | None, partial_s: float) -> str:
        """Return why a gang would run in part for too long, "" if it would not.

        ``partial_s``: for how long it may run in part, in seconds.
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
        """Forget gangs without a new member for ``FORGOTTEN_S``: their controller has given up."""
        self._awaited = {
            gang: awaited
            for gang, awaited in self._awaited.items()
            if now - awaited.last < FORGOTTEN_S
        }
