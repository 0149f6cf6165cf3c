"""Gangs that give way to others: the section ``makingRoom`` (docs/queues.md)."""

import msgspec

from muster.observability.configfile import out_of_range


class MakingRoomConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Running gangs end, so that one that is entitled or has a higher priority gets their room."""

    #: whether any gang is made to give way
    enabled: bool = False
    #: gangs of one queue that give way within a minute
    gangs_per_minute: int = 10
    #: time until a gang that a disruption budget protects is let alone
    budget_seconds: float = 30.0
    #: time after which members that do not end are named
    hangs_after_seconds: float = 120.0


def problems(making_room: MakingRoomConfig) -> list[str]:
    """Return one line per invalid value."""
    bounds = (
        ("gangsPerMinute", making_room.gangs_per_minute, 1, 100_000),
        ("budgetSeconds", making_room.budget_seconds, 0, 86400),
        ("hangsAfterSeconds", making_room.hangs_after_seconds, 1, 86400),
    )
    return out_of_range(
        (f"makingRoom.{field}", value, low, high) for field, value, low, high in bounds
    )
