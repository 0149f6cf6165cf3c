"""Who gives way, or why nobody does, in sentences and in lines."""

from typing import Final

from muster.decisions.roomplan import NoRoom, RoomAnswer, RoomPlan, RoomVictim
from muster.placement.victims.costs import VictimCost

_MOST_NAMED: Final = 4
_MOST_LISTED: Final = 16


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
    keeps = ", ".join(f"{count}: {why}" for why, count in answer.keeps)
    rules = f"; of the gangs that run, {keeps}" if keeps else ""
    held = "".join(f"; {one}" for one in answer.held[:_MOST_NAMED])
    return f"{_nobody(answer)}{rules}{held}"


def lines_of(answer: RoomAnswer) -> list[str]:
    """Return an answer for people: the cost, then each gang; or the reason, then each rule."""
    if isinstance(answer, NoRoom):
        unsure = "" if answer.certain else "; not every set of gangs was looked at"
        kept = [f"  {_counted(count, 'gang')}: {why}" for why, count in answer.keeps]
        held = [f"  {one}" for one in answer.held]
        return [f"{_nobody(answer)}{unsure}", *kept, *held]
    listed = [f"  {_listed(one)}" for one in answer.victims[:_MOST_LISTED]]
    if len(answer.victims) > _MOST_LISTED:
        listed.append(f"  and {len(answer.victims) - _MOST_LISTED} more")
    least = "; no other gangs would cost less" if answer.proven else ""
    who = _counted(len(answer.victims), "gang")
    verb = "gives" if len(answer.victims) == 1 else "give"
    return [f"{who} {verb} it room: {_cost(answer.cost)}{least}", *listed]


def _nobody(answer: NoRoom) -> str:
    detail = f" ({answer.detail})" if answer.detail else ""
    return f"nobody gives way: {answer.reason}{detail}"


def _named(one: RoomVictim) -> str:
    part = "" if one.is_whole else f" ({len(one.rows)} members above its minimum)"
    final = ", for good, as no controller makes its pods again" if one.is_final else ""
    return f"{one.gang}{part}: {one.right}{final}"


def _listed(one: RoomVictim) -> str:
    what = "ends" if one.is_whole else "keeps its minimum"
    final = "; no controller makes its pods again" if one.is_final else ""
    return f"{one.gang}, priority {one.priority}, {what}: {_cost(one.cost)}; {one.right}{final}"


def _cost(cost: VictimCost) -> str:
    end = "ends" if cost.pods == 1 else "end"
    return f"{_counted(cost.pods, 'pod')} {end}, {cost.lost} device-seconds of work are lost"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
