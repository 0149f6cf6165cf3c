"""An entry of the ledger: the room one pod holds before it is bound, and its states.

::

                 PlanHeld                 PodReleased, or the watch shows the pin
     (waiting) ───────────► ┌─────────┐ ───────────────────► ┌──────────┐
                            │ ASSUMED │                      │ RELEASED │
        ▲                   └─┬──┬──┬─┘                      └─┬──────┬─┘
        │   forgotten         │  │  │                          │      │ node unfit: moves to a
        ├─────────────────────┘  │  │ bound                    │      │ fit spare, else *broken*
        │   expired (deadline),  │  │                          │      │ (it stays pinned: told
        │   node unfit or filled │  ▼                    bound │      │ once, and held on)
        └────────────────────────┘ ┌───────────┐ ◄─────────────┘      │
                                   │ CONFIRMED │                      │
                                   └───────────┘        pod gone, finished or terminating:
                                                        forgotten from any state

A *released* entry never expires: the pin is in the API server and cannot be taken back, so
kube-scheduler may bind the pod at any time. A restart finds every released pod by its plan
annotation and rebuilds these entries. *Confirmed* is not stored: it is the bound pod.

A *standby* entry is a hot spare: a seat without a pod, kept for a member that the gang may
lose. It never expires, is the first to yield where room is short, and is not in any API
object: whoever leads next takes the seats anew, before anything else is planned.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from muster.cluster.ids import GangKey


class HoldState(StrEnum):
    """See the drawing in the module's docstring."""

    ASSUMED = "Assumed"
    RELEASED = "Released"
    CONFIRMED = "Confirmed"
    STANDBY = "Standby"


@dataclass(frozen=True, slots=True)
class Hold:
    """What one pod holds.

    ``node``: where its room is counted. ``spares``: nodes where room (softly) and devices
    (firmly) are kept for it besides. ``pins``: every node its pin allows, the planned one
    first; it outlives a move to a spare. ``deadline``: epoch seconds, infinite once
    released. ``devices``: by node of ``pins``. ``broken``: why it cannot bind anywhere now,
    "" while it can.
    """

    state: HoldState
    node: str
    spares: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    deadline: float = float("inf")
    plan_id: str = ""
    gang: GangKey | None = None
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rank: int = -1
    generation: int = 0
    broken: str = ""
