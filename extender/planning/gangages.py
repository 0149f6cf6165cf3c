"""Since when gangs wait that had to give way: they come back at the head of their class.

::

    pods end for another gang ──► noted ──► its controller makes new ones within KEPT_S ──► as old
                                   └──────► no pods come ──► forgotten

A gang whose object lives on (a Job that Muster suspended, a PodGroup) has its age from that object.
One that is described by its pods alone would be as young as its new pods, and wait behind all that
came while it ran. A new leader knows the age of a gang whose pods are still there, and of no other.
"""

from dataclasses import dataclass, field
from typing import Final

from extender.engine import Clock
from muster.cluster.ids import GangKey

KEPT_S: Final = 900.0  # a Job's controller makes a new pod within 6 minutes (JobBackoffLimit)
MOST: Final = 16_384  # gangs; beyond them the first one is forgotten


@dataclass(slots=True)
class GangAges:
    """The gangs that had to give way lately."""

    clock: Clock
    #: by gang, since when it waits, and until when that counts (both seconds since the epoch)
    noted: dict[GangKey, tuple[float, float]] = field(default_factory=dict)

    def note(self, gang: GangKey, submitted_at: float) -> None:
        """Note the age of a gang that ends for another one."""
        self.noted.pop(gang, None)
        self.noted[gang] = submitted_at, self.clock() + KEPT_S
        if len(self.noted) > MOST:
            del self.noted[next(iter(self.noted))]

    def of(self, gang: GangKey) -> float | None:
        """Return since when a gang waits that comes back; it is forgotten with that.

        ``None``: it did not give way lately.
        """
        since, until = self.noted.pop(gang, (0.0, 0.0))
        return since if since > 0 and self.clock() < until else None
