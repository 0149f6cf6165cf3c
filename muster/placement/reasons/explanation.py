"""Decisions as sentences for people and as plain values for the read-only API."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, TypeAlias, assert_never

import numpy as np

from muster.placement.decision import (
    Decision,
    NearestFit,
    Plan,
    Reject,
    RuleCount,
    Wait,
    WaitExplanation,
)

Plain: TypeAlias = "str | int | bool | list[Plain] | dict[str, Plain] | None"
"""What JSON can say."""

CLUSTER: Final = "cluster"
"""``NearestFit.level`` where no level is required."""


def render(decision: Decision, now: float | None = None) -> list[str]:
    """Return the lines a person reads, most important first.

    With ``now`` (epoch seconds) they include how long holders have been running; an Event, which
    is to stay the same, does without.
    """
    match decision:
        case Plan():
            return _plan_lines(decision)
        case Wait():
            return _wait_lines(decision, now)
        case Reject():
            return [f"{decision.gang} {_never(decision)}: {decision.reason}", decision.message]
        case _:
            assert_never(decision)


def _never(reject: Reject) -> str:
    if reject.reason.of_the_fleet:
        return "fits no nodes that the cluster has now, even empty"
    return "can never be placed as written"


def in_one_line(lines: Iterable[str]) -> str:
    """Return lines for a place that has only one, an Event or a condition."""
    return "; ".join(line.strip() for line in lines)


def _plan_lines(plan: Plan) -> list[str]:
    used = ", ".join(
        f"{count} {short(level)}{'' if count == 1 else 's'}" for level, count in plan.domains
    )
    lines = [f"{plan.gang} goes: {len(plan.pods)} members on {used or 'no node'}"]
    if plan.proven and len(plan.pods) > 1:
        lines.append("proven: no placement of them is on fewer domains")
    if len(plan.left_over):
        lines.append(f"{len(plan.left_over)} members above the minimum wait for room")
    if plan.spares.shape[1]:
        covered = int(np.count_nonzero((plan.spares >= 0).any(axis=1)))
        lines.append(f"{covered} of {len(plan.pods)} members have a spare node")
    return lines


def _wait_lines(wait: Wait, now: float | None) -> list[str]:
    why = wait.explanation
    lines = [f"{wait.gang} waits: {wait.reason}"]
    if why.cause:
        lines.append(why.cause)
    if why.nearest is not None:
        lines += _nearest_lines(why.nearest, now)
    if why.rules:
        lines.append(f"{why.feasible} of {why.nodes} nodes can take one more member now")
        lines += [_rule_line(rule) for rule in why.rules if rule.removed]
    if why.error:
        lines.append(f"what it lacks could not be found out, please report it: {why.error}")
    if why.remedy:
        lines.append(f"remedy: {why.remedy}")
    if why.relaxes_at is not None:
        lines.append(
            f"one {short(why.relaxes)} is required until {moment(why.relaxes_at)}, "
            "from then on it is only preferred"
        )
    lines += [f"not modelled, left to kube-scheduler: {text}" for text in why.unmodelled]
    return lines


def moment(at: float) -> str:
    """Return a time (epoch seconds) as "2026-11-21T12:28:55Z"."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _nearest_lines(fit: NearestFit, now: float | None) -> Iterator[str]:
    """Yield what fits where, what the nearest domain lacks, and who holds it."""
    each = ", ".join(f"{amount} {name}" for name, amount in fit.asks if "/" in name)
    members = f"{fit.needed} members" + (f" of {each} each" if each else "")
    yield f"{_how_many(fit)} room for {members}"
    text = f"{_place(fit)} has room for {fit.fits}"
    if fit.short_of:
        text += ", lacks " + ", ".join(f"{amount} {name}" for name, amount in fit.short_of)
    yield text
    yield from _holders(fit, now)


def _how_many(fit: NearestFit) -> str:
    if fit.level == CLUSTER:
        return "the cluster has" if fit.fitting else "the cluster has no"
    return f"{fit.fitting} of {fit.domains} {short(fit.level)}s have"


def _place(fit: NearestFit) -> str:
    return "it" if fit.level == CLUSTER else f"the nearest, {short(fit.level)} {fit.domain},"


def short(level: str) -> str:
    """Return what people call a level: the last part of its label key, ``host`` for the host."""
    return level.rsplit("/", 1)[-1].replace("hostname", "host")


def _holders(fit: NearestFit, now: float | None) -> Iterator[str]:
    """Yield for instance "  held by muster/ns/train: 48 (priority 5, 6 pods, for 3h)"."""
    for place, (gang, amount) in enumerate(fit.held_by):
        facts = [f"priority {fit.priorities[place] if fit.priorities else 0}"]
        if fit.sizes and fit.sizes[place]:
            facts.append(f"{fit.sizes[place]} pod{'' if fit.sizes[place] == 1 else 's'}")
        if now is not None and fit.since and fit.since[place]:
            facts.append(f"for {_lasting(now - fit.since[place])}")
        yield f"  held by {gang}: {amount} ({', '.join(facts)})"
    if fit.others:
        yield f"  held by pods that are not Muster's: {fit.others}"


def _lasting(seconds: float) -> str:
    """Return a duration in its largest unit: 40s, 12m, 3h, 5d."""
    whole = max(int(seconds), 0)
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if whole >= 2 * length:
            return f"{whole // length}{unit}"
    return f"{whole}s"


def _rule_line(rule: RuleCount) -> str:
    detail = f" ({rule.detail})" if rule.detail else ""
    return f"  {rule.removed} removed by {rule.rule}{detail}"


def to_dict(decision: Decision) -> dict[str, Plain]:
    """Return a decision as JSON values: counts and words, no arrays."""
    head: dict[str, Plain] = {"gang": decision.gang, "generation": decision.generation}
    match decision:
        case Plan():
            domains: dict[str, Plain] = dict(decision.domains)
            return head | {
                "decision": "plan",
                "members": len(decision.pods),
                "left_over": len(decision.left_over),
                "proven": decision.proven,
                "domains": domains,
            }
        case Wait():
            return (
                head
                | {"decision": "wait", "reason": str(decision.reason)}
                | _why(decision.explanation)
            )
        case Reject():
            return head | {
                "decision": "reject",
                "reason": str(decision.reason),
                "message": decision.message,
            }
        case _:
            assert_never(decision)


def _why(why: WaitExplanation) -> dict[str, Plain]:
    rules: list[Plain] = [
        {"rule": rule.rule, "removed": rule.removed, "detail": rule.detail} for rule in why.rules
    ]
    return {
        "nodes": why.nodes,
        "feasible": why.feasible,
        "rules": rules,
        "nearest": None if why.nearest is None else _nearest(why.nearest),
        "remedy": why.remedy,
        "cause": why.cause,
        "relaxes_at": None if why.relaxes_at is None else moment(why.relaxes_at),
        "unmodelled": list(why.unmodelled),
    }


def _nearest(fit: NearestFit) -> dict[str, Plain]:
    return {
        "level": fit.level,
        "domain": fit.domain,
        "fits": fit.fits,
        "needed": fit.needed,
        "short_of": dict(fit.short_of),
        "held_by": dict(fit.held_by),
        "held_by_others": fit.others,
        "holders": _holder_values(fit),
        "asks": dict(fit.asks),
        "domains": fit.domains,
        "fitting": fit.fitting,
        "largest": fit.largest,
    }


def _holder_values(fit: NearestFit) -> list[Plain]:
    count = len(fit.held_by)
    along = zip(
        fit.held_by,
        fit.priorities or (0,) * count,
        fit.sizes or (0,) * count,
        fit.since or (0.0,) * count,
        strict=True,
    )
    return [
        {
            "gang": gang,
            "amount": amount,
            "priority": priority,
            "pods": size,
            "since": moment(since) if since else None,
        }
        for (gang, amount), priority, size, since in along
    ]
