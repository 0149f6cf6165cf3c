"""Gang views made by hand, for rules that look at counts and times only."""

import itertools

import numpy as np

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangPhase, GangSpec
from muster.cluster.tables.gangview import GangView

DEFAULT_MIN = 4


def gang(
    name: str,
    *,
    min_count: int = DEFAULT_MIN,
    size: int | None = None,
    max_count: int | None = None,
    priority: int = 0,
    submitted_at: float = 0.0,
    last_member_at: float = 0.0,
    succeeded: int = 0,
    known: bool = True,
    **members: int,
) -> GangView:
    """Return a gang with so many members in each state; rows are numbered through."""
    key = GangKey(f"muster/ns/{name}")
    counter = itertools.count()
    states = ("waiting", "blocked", "assumed", "released", "bound", "leaving")
    rows = {
        state: np.fromiter(itertools.islice(counter, members.get(state, 0)), np.int32)
        for state in states
    }
    spec = GangSpec(key, "ns", name, "muster", min_count, size, max_count)
    return GangView(
        key=key,
        spec=spec if known else None,
        phase=GangPhase.PENDING,
        priority=priority,
        queue="",
        finished=np.fromiter(itertools.islice(counter, succeeded), np.int32),
        succeeded=succeeded,
        submitted_at=submitted_at,
        first_bound_at=None,
        last_member_at=last_member_at,
        attempts=0,
        skips=0,
        last_reason="",
        **rows,
    )
