"""Who gives way, or why nobody does, in sentences."""

from typing import Final

from muster.decisions.roomplan import NoRoom, RoomAnswer, RoomPlan, RoomVictim

_MOST_NAMED: Final = 4


def makes_room(plan: RoomPlan) -> str:
    """Return who gives way to a gang, and what that costs, in a sentence."""
    named = [_named(one) for one in plan.victims[:_MOST_NAMED]]
    if len(plan.victims) > _MOST_NAMED:
        named.append(f"{len(plan.victims) - _MOST_NAMED} more")
    lost = f"; {plan.cost.lost} device-seconds of work are lost" if plan.cost.lost else ""
    least = ", the least possible" if plan.proven else ""
    return f"gives it room: {', '.join(named)}{lost}{least}"


def why_nobody(answer: NoRoom) -> str:
    """Return why nobody gives way to a gang, in a sentence."""
    detail = f" ({answer.detail})" if answer.detail else ""
    keeps = ", ".join(f"{count}: {why}" for why, count in answer.keeps)
    rules = f"; of the gangs that run, {keeps}" if keeps else ""
    return f"nobody gives way: {answer.reason}{detail}{rules}"


def text_of(answer: RoomAnswer) -> str:
    """Return an answer in a sentence."""
    return makes_room(answer) if isinstance(answer, RoomPlan) else why_nobody(answer)


def _named(one: RoomVictim) -> str:
    part = "" if one.is_whole else f" ({len(one.rows)} members above its minimum)"
    return f"{one.gang}{part}: {one.right}"
