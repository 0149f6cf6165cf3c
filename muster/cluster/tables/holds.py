"""An entry of the ledger: the room one pod holds before it is bound, and its states.

::

                 PlanHeld                 PodReleased, or the watch shows the pin
     (waiting) ───────────► ┌─────────┐ ───────────────────► ┌──────────┐
                            │ ASSUMED │                      │ RELEASED │
        ▲                   └─┬──┬──┬─┘                      └─┬──────┬─┘
        │   forgotten         │  │  │                          │      │ node unfit: moves to a
        ├─────────────────────┘  │  │ bound                    │      │ fit spare, else *broken*
        │   expired (deadline),  │  │                          │      │ (it stays pinned:
        │   node unfit or filled │  ▼                    bound │      │ held, reported once)
        └────────────────────────┘ ┌───────────┐ ◄─────────────┘      │
                                   │ CONFIRMED │                      │
                                   └───────────┘        pod gone, finished or terminating:
                                                        forgotten from any state

A *released* entry never expires: the pin is in the API server and cannot be taken back, so
kube-scheduler may bind the pod at any time. A restart finds every released pod by its plan
annotation and rebuilds these entries. *Confirmed* is not stored: it is the bound pod.

A *standby* entry is a hot spare: room without a pod, held for a member that the gang may
lose. It never expires, is the first to yield where room is short, and is not in any API
object: the next leader takes it anew, before anything else is planned.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from muster.cluster.events import PlanNote
from muster.cluster.ids import GangKey


class HoldState(StrEnum):
    """See the drawing in the module's docstring."""

    ASSUMED = "Assumed"
    RELEASED = "Released"
    CONFIRMED = "Confirmed"
    STANDBY = "Standby"


@dataclass(frozen=True, slots=True)
class Hold:
    """What one pod holds."""

    #: Its state, as drawn in the module's docstring.
    state: HoldState
    #: The node where its room is counted.
    node: str
    #: Further nodes where room (softly) and devices (firmly) are reserved for it.
    spares: tuple[str, ...] = ()
    #: All nodes that its pin allows, the planned one first; unchanged by a move to a spare.
    pins: tuple[str, ...] = ()
    #: Epoch seconds, infinite once released.
    deadline: float = float("inf")
    #: The plan that the pod is part of.
    plan_id: str = ""
    #: The gang of the pod, ``None`` for a pod without one.
    gang: GangKey | None = None
    #: By node of ``pins``, names of the devices that were chosen there.
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The number that the plan gave the pod, -1 for none.
    rank: int = -1
    #: The snapshot's generation that the plan was made on.
    generation: int = 0
    #: Why it cannot bind anywhere now, "" while it can.
    broken: str = ""

    @classmethod
    def of_note(cls, note: PlanNote, gang: GangKey | None) -> "Hold":
        """Return the released hold of a pod with such a plan annotation."""
        spares = tuple(dict.fromkeys(name for name in note.spares if name != note.node))
        return cls(
            state=HoldState.RELEASED,
            node=note.node,
            spares=spares,
            pins=(note.node, *spares),
            plan_id=note.plan_id,
            gang=gang,
            devices=note.devices,
            rank=note.rank,
            generation=note.generation,
        )

    def note(self) -> PlanNote:
        """Return the content of the ``muster.dev/plan`` annotation: the plan as it was pinned.

        A hold that has moved to a spare returns the note that it was released with: the pin is
        unchanged, and the annotation names the devices on each of its nodes.
        """
        planned, *spares = self.pins or (self.node, *self.spares)
        return PlanNote(
            plan_id=self.plan_id,
            node=planned,
            spares=tuple(spares),
            devices=self.devices,
            rank=self.rank,
            generation=self.generation,
        )
