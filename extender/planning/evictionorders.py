"""Who gives way to whom, or leaves which nodes, and why."""

from dataclasses import dataclass
from typing import Final

from muster.cluster.ids import GangKey, PodUid

NOBODY: Final = GangKey("")
"""Who gets the room of gangs that leave nodes."""


@dataclass(frozen=True, slots=True)
class EvictedGang:
    """A gang that ends, or members that it can spare."""

    gang: GangKey
    #: Why it may be made to give way: "its queue uses 8 GPUs more than its own".
    why: str
    #: The members that end, empty: all of them.
    members: tuple[PodUid, ...] = ()
    #: Seconds of work of all its devices that are lost.
    lost_seconds: float = 0.0
    #: The nodes that it leaves, "" for none: it gives way to a gang.
    leaves: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether the whole gang ends."""
        return not self.members


@dataclass(frozen=True, slots=True)
class EvictionOrder:
    """A set of gangs that end together, so that another one gets their room."""

    #: The gang that gets the room; ``NOBODY``: nodes are drained.
    preemptor: GangKey
    #: Those that give way, the first one first.
    victims: tuple[EvictedGang, ...]
