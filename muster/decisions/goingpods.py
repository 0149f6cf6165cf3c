"""The pods that are to end for other gangs."""

from collections.abc import Iterator

from muster.cluster.snapshot import Snapshot
from muster.queueing.backfill.expectedends import Going


def going_rows(snapshot: Snapshot, going: Going) -> Iterator[int]:
    """Yield the rows of pods that are to end; ``going``: by gang the members, empty: all."""
    for key, members in going.items():
        view = snapshot.gang(key)
        rows = [] if view is None else view.in_room.tolist()
        yield from (row for row in rows if not members or snapshot.pods.uid(row) in members)
