"""Who gives way to a gang, as part of answers of ``explain`` and ``whatif``."""

import msgspec


class GivingGang(msgspec.Struct, frozen=True):
    """A gang that ends, or members of it above its minimum."""

    #: its key
    gang: str
    #: whether the gang ends
    whole: bool
    priority: int
    #: pods that end
    pods: int
    #: device-seconds of work that are lost
    lost: int
    #: with what right it is made to give way
    right: str
    #: whether it ends for good: no controller makes its pods again
    final: bool = False


class KeptGangs(msgspec.Struct, frozen=True):
    """A rule, and the gangs that give no way because of it."""

    rule: str
    gangs: int


class HeldNote(msgspec.Struct, frozen=True):
    """A gang that gives no way because a disruption budget does not allow that all of it ends."""

    #: its key, "" for several together that may give way one by one
    gang: str
    #: NAMESPACE/NAME
    budget: str
    #: pods that the budget allows to end now
    allowed: int
    #: pods that it counts
    pods: int


class RoomNote(msgspec.Struct, frozen=True):
    """Who gives way to a gang, or why nobody does."""

    #: whether somebody gives way
    makes: bool
    #: why nobody does, "" where somebody does
    reason: str
    #: the resource, or what the gang lacks; "" where the reason says all
    detail: str
    #: those that give way, by key
    gives: tuple[GivingGang, ...]
    #: gangs that end; one that keeps its minimum does not
    ends: int
    #: pods that end
    pods: int
    #: device-seconds of work that are lost
    lost: int
    #: whether it is known that no set costs less, or that there is none
    certain: bool
    #: those that give no way, by the first rule that keeps them, most gangs first
    kept: tuple[KeptGangs, ...]
    #: some of those that a disruption budget keeps
    held: tuple[HeldNote, ...] = ()
