"""Since when gangs wait that had to give way: they come back at the head of their class.

::

    pods end for another gang ──► noted ──► its controller makes new ones within KEPT_S ──► as old
                                   └──────► no pods come ──► forgotten

A gang whose object lives on (a Job that Muster suspended, a PodGroup) has its age from that object.
One that is described by its pods alone would be as young as its new pods, and wait behind all that
came while it ran. The mark on its last pod says its age to the next leader, without a further write
(``extender.evictions.marks``); once that pod is gone too, a new leader does not know it.
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
        """Note the age of a gang that ends for another one; the oldest of several counts."""
        now = self.clock()
        before, until = self.noted.pop(gang, (submitted_at, now))
        since = min(before, submitted_at) if now < until else submitted_at
        self.noted[gang] = since, now + KEPT_S
        if len(self.noted) > MOST:
            del self.noted[next(iter(self.noted))]

    def of(self, gang: GangKey) -> float | None:
        """Return since when a gang waits that comes back; it is forgotten with that.

        ``None``: it did not give way lately.
        """
        since, until = self.noted.pop(gang, (0.0, 0.0))
        return since if since > 0 and self.clock() < until else None
