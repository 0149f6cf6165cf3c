"""Who gives way to a gang, in the form of the answers."""

from muster.apiwire.room import GivingGang, HeldNote, KeptGangs, RoomNote
from muster.decisions.roomplan import NoRoom, RoomAnswer, RoomPlan, RoomVictim


def note_of(answer: RoomAnswer) -> RoomNote:
    """Return who gives way, or why nobody does, in the form of the answers."""
    return _kept(answer) if isinstance(answer, NoRoom) else _given(answer)


def _given(plan: RoomPlan) -> RoomNote:
    return RoomNote(
        makes=True,
        reason="",
        detail="",
        gives=tuple(map(_gang, plan.victims)),
        ends=plan.cost.gangs,
        pods=plan.cost.pods,
        lost=plan.cost.lost,
        certain=plan.proven,
        kept=(),
    )


def _gang(one: RoomVictim) -> GivingGang:
    return GivingGang(
        gang=one.gang,
        whole=one.is_whole,
        priority=one.priority,
        pods=one.cost.pods,
        lost=one.cost.lost,
        right=one.right.value,
        final=one.is_final,
    )


def _kept(answer: NoRoom) -> RoomNote:
    return RoomNote(
        makes=False,
        reason=answer.reason.value,
        detail=answer.detail,
        gives=(),
        ends=0,
        pods=0,
        lost=0,
        certain=answer.certain,
        kept=tuple(KeptGangs(why.value, count) for why, count in answer.keeps),
        held=tuple(HeldNote(one.gang, one.budget, one.allowed, one.pods) for one in answer.held),
    )
