"""Whether all members of a gang have arrived, so that it can be planned as a whole.

A gang of known size, or with an upper bound, is planned as soon as all of it is here. One
that has enough members (``min_count``) but may get more is planned when no new member has come
for a short *window*: controllers create pods in bursts, and a plan made for the first half
would place the second half wherever room is left.
"""

from dataclasses import dataclass

from muster.cluster.tables.gangview import GangView
from muster.queueing.order import placed


@dataclass(frozen=True, slots=True)
class Ready:
    """Plan it now."""


@dataclass(frozen=True, slots=True)
class NotBefore:
    """Enough members are here."""

    #: Look again then unless more arrive, seconds since the epoch.
    at: float


@dataclass(frozen=True, slots=True)
class Incomplete:
    """Members are missing."""

    #: Members that are here or placed.
    present: int
    #: Members that must be.
    needed: int
    #: Members that exist and cannot be planned: another controller's gate, or terminating.
    blocked: int


@dataclass(frozen=True, slots=True)
class Idle:
    """No member is waiting for a plan."""


Assembly = Ready | NotBefore | Incomplete | Idle


def assemble(gang: GangView, *, now: float, window_s: float) -> Assembly:
    """Return whether ``gang`` can be planned at ``now``; ``window_s`` is in seconds."""
    if not len(gang.waiting):
        return Idle()
    present = placed(gang) + len(gang.waiting)
    needed = gang.spec.min_count if gang.spec is not None else present + 1
    if gang.spec is None or present < needed:
        return Incomplete(present, needed, len(gang.blocked))
    most = gang.spec.size if gang.spec.size is not None else gang.spec.max_count
    if most is not None and present >= most:
        return Ready()
    at = gang.last_member_at + window_s
    return Ready() if now >= at else NotBefore(at)
