"""Gangs that give way to others: the section ``makingRoom`` (docs/queues.md)."""

from collections.abc import Iterator
from typing import Final

import msgspec

from muster.cluster.quota.aliases import ORDER, OWN
from muster.observability.configfile import out_of_range
from muster.queueing.preemption.policies import GivingServices, RoomPermission

_VOLCANO: Final = "volcano"


class VolcanoActions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which of the actions of Volcano's scheduler are done for its queues.

    Its queue objects do not say it: it stands in the file of its scheduler.
    """

    #: whether gangs give way to a higher priority of their queue
    preempt: bool = False
    #: whether gangs of queues that use more than they deserve give way to those of others
    reclaim: bool = False


class MakingRoomConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Running gangs end, so that one that is entitled or has a higher priority gets their room."""

    #: whether any gang is made to give way
    enabled: bool = False
    #: the dialects whose queues take and give, as their objects say; others do neither
    queues: tuple[str, ...] = (OWN,)
    #: with ``volcano`` in ``queues``: what its queue objects do not say
    volcano: VolcanoActions = VolcanoActions()
    #: which gangs that serve requests give way: "none", "shared" (those that share their devices
    #: with others), "all"
    services: GivingServices = GivingServices.SHARED
    #: whether pods that wait are nominated to the nodes that others leave for them, so that
    #: kube-scheduler keeps pods off that are not Muster's, of an equal or lower priority
    nominate: bool = False
    #: gangs of one queue that give way within a minute
    gangs_per_minute: int = 10
    #: time until a gang that a disruption budget protects is let alone
    budget_seconds: float = 30.0
    #: time after which members that do not end are named
    hangs_after_seconds: float = 120.0

    def permitted(self) -> dict[str, RoomPermission]:
        """Return the dialects whose gangs give way, and in which ways."""
        return self.named() if self.enabled else {}

    def named(self) -> dict[str, RoomPermission]:
        """Return the dialects whose gangs give way, or would (``muster whatif --preempt``)."""
        found = {dialect: RoomPermission() for dialect in self.queues}
        if _VOLCANO in found:
            found[_VOLCANO] = RoomPermission(self.volcano.preempt, self.volcano.reclaim)
        return found


def problems(making_room: MakingRoomConfig) -> list[str]:
    """Return one line per invalid value."""
    bounds = (
        ("gangsPerMinute", making_room.gangs_per_minute, 1, 100_000),
        ("budgetSeconds", making_room.budget_seconds, 0, 86400),
        ("hangsAfterSeconds", making_room.hangs_after_seconds, 1, 86400),
    )
    ranges = out_of_range(
        (f"makingRoom.{field}", value, low, high) for field, value, low, high in bounds
    )
    return [*ranges, *_wrong_dialects(making_room)]


def _wrong_dialects(making_room: MakingRoomConfig) -> Iterator[str]:
    for dialect in making_room.queues:
        if dialect not in ORDER:
            yield f'makingRoom.queues: "{dialect}" is not allowed: one of {", ".join(ORDER)}'
    actions = making_room.volcano
    if _VOLCANO in making_room.queues and not (actions.preempt or actions.reclaim):
        yield (
            "makingRoom.queues names volcano, and makingRoom.volcano has neither preempt nor "
            "reclaim: set one of them to true, or leave volcano out"
        )
