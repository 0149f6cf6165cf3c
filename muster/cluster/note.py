"""The note that goes with a held pod into its annotation."""

from muster.cluster.events import PlanNote
from muster.cluster.tables.holds import Hold


def note_of(hold: Hold) -> PlanNote:
    """Return what the ``muster.dev/plan`` annotation says: the plan as it was pinned.

    A plan that has moved to a spare keeps the note it was released with: the pin still
    reads so, and the annotation holds the devices of every node of it.
    """
    planned, *spares = hold.pins or (hold.node, *hold.spares)
    return PlanNote(
        plan_id=hold.plan_id,
        node=planned,
        spares=tuple(spares),
        devices=hold.devices,
        rank=hold.rank,
        generation=hold.generation,
    )
