"""The order in which gangs are looked at.

1. Gangs that were begun and are not whole: some members hold room that is useless until
   the others join them. This is also what completes, after a restart, the gangs that the
   previous process left half released, before anything else is planned.
2. Gangs that have their place, with no member waiting, and lack hot spares: a spare is part of
   the gang that it is kept for, and after a restart it is taken again before its room is
   offered to others.
3. Higher priority.
4. Earlier submission.
5. The key, so that two runs over the same objects agree.
"""

from collections.abc import Sequence

from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView


def order(gangs: Sequence[GangView], snapshot: Snapshot, now: float) -> list[GangKey]:  # noqa: ARG001 - fair share and ageing will read both
    """Return the keys of ``gangs`` in the order in which the planner should look at them."""
    return [gang.key for gang in sorted(gangs, key=_rank)]


def placed(gang: GangView) -> int:
    """Return the members that count towards ``min_count``: holding room, or done with it well."""
    return holding(gang) + gang.succeeded


def holding(gang: GangView) -> int:
    """Return the members that hold room: assumed, released or bound."""
    return len(gang.assumed) + len(gang.released) + len(gang.bound)


def begun(gang: GangView) -> bool:
    """Return whether some members hold room although fewer than ``min_count`` are placed."""
    return gang.spec is not None and holding(gang) > 0 and placed(gang) < gang.spec.min_count


def waits_for_extras(gang: GangView) -> bool:
    """Return whether a gang has its minimum and those of its roles: who waits is above them."""
    has_count = gang.spec is not None and placed(gang) >= gang.spec.min_count
    return has_count and not gang.needs_role


def _rank(gang: GangView) -> tuple[bool, bool, int, float, GangKey]:
    lacks = bool(gang.lacks_standby) and not len(gang.waiting)
    return (not begun(gang), not lacks, -gang.priority, gang.submitted_at, gang.key)
