"""Decisions as sentences for people and as plain values for the read-only API."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, TypeAlias, assert_never

import numpy as np

from placement.decision import Decision, Explanation, NearestFit, Plan, Reject, RuleCount, Wait

Plain: TypeAlias = "str | int | bool | list[Plain] | dict[str, Plain] | None"
"""What JSON can say."""

CLUSTER: Final = "cluster"
"""``NearestFit.level`` where no level is required."""


def render(decision: Decision) -> list[str]:
    """Return the lines a person reads, most important first."""
    match decision:
        case Plan():
            return _plan_lines(decision)
        case Wait():
            return _wait_lines(decision)
        case Reject():
            return [
                f"{decision.gang} can never be placed as written: {decision.reason}",
                decision.message,
            ]
        case _:
            assert_never(decision)


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


def _wait_lines(wait: Wait) -> list[str]:
    why = wait.explanation
    lines = [f"{wait.gang} waits: {wait.reason}"]
    if why.cause:
        lines.append(why.cause)
    if why.nearest is not None:
        lines.append(_nearest_line(why.nearest))
    if why.rules:
        lines.append(f"{why.feasible} of {why.nodes} nodes can take one more member now")
        lines += [_rule_line(rule) for rule in why.rules if rule.removed]
    if why.remedy:
        lines.append(f"remedy: {why.remedy}")
    if why.relaxes_at is not None:
        lines.append(
            f"one {short(why.relaxes)} is required until {_moment(why.relaxes_at)}, "
            "from then on it is only preferred"
        )
    lines += [f"not modelled, left to kube-scheduler: {text}" for text in why.unmodelled]
    return lines


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _nearest_line(fit: NearestFit) -> str:
    """Return for instance "0 of 12 racks have room for 64 members of 8 nvidia.com/gpu …"."""
    each = ", ".join(f"{amount} {name}" for name, amount in fit.asks if "/" in name)
    members = f"{fit.needed} members" + (f" of {each} each" if each else "")
    text = f"{_how_many(fit)} room for {members}; {_place(fit)} has room for {fit.fits}"
    if fit.short_of:
        text += ", lacks " + ", ".join(f"{amount} {name}" for name, amount in fit.short_of)
    if fit.held_by:
        text += "; held by " + ", ".join(_holders(fit))
    return text


def _how_many(fit: NearestFit) -> str:
    if fit.level == CLUSTER:
        return "the cluster has" if fit.fitting else "the cluster has no"
    return f"{fit.fitting} of {fit.domains} {short(fit.level)}s have"


def _place(fit: NearestFit) -> str:
    return "it" if fit.level == CLUSTER else f"the nearest, {short(fit.level)} {fit.domain},"


def short(level: str) -> str:
    """Return what people call a level: the last part of its label key, ``host`` for the host."""
    return level.rsplit("/", 1)[-1].replace("hostname", "host")


def _holders(fit: NearestFit) -> list[str]:
    priorities = fit.priorities or (0,) * len(fit.held_by)
    return [
        f"{gang} ({amount}, priority {priority})"
        for (gang, amount), priority in zip(fit.held_by, priorities, strict=True)
    ]


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


def _why(why: Explanation) -> dict[str, Plain]:
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
        "relaxes_at": None if why.relaxes_at is None else _moment(why.relaxes_at),
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
        "asks": dict(fit.asks),
        "domains": fit.domains,
        "fitting": fit.fitting,
        "largest": fit.largest,
    }
