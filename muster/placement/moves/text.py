"""Proposals for people and for the read-only API. Names of bound pods are not in the model: who
asks looks them up and hands them in.
"""  # noqa: D205  # one sentence

from collections.abc import Mapping

from muster.cluster.snapshot import Snapshot
from muster.placement.moves.proposals import Answer, Disturbed, Move, NoHelp, Proposal, Unhelpful
from muster.placement.reasons.explanation import Plain, short

_MILLI = 1000

Names = Mapping[int, str]
"""Pod row → "namespace/name"."""


def lines(snapshot: Snapshot, answer: Answer, names: Names) -> list[str]:
    """Return what a person reads, most important first."""
    if isinstance(answer, Unhelpful):
        return _unhelpful(answer)
    found = [_headline(answer)]
    for each in answer.disturbed:
        found += ["", _gang_line(each)]
        found += [f"  {_name(move, names)}  {_way(snapshot, move)}" for move in each.moves]
    found += ["", *_then(answer), "nothing was changed: this is a proposal"]
    return found


def summary(proposal: Proposal) -> str:
    """Return the moves in a few words, as "3 moves that interrupt 6 devices of 3 gangs"."""
    price = proposal.price
    moves = f"{price.pods} move{_s(price.pods)}"
    gangs = f"{price.gangs} gang{_s(price.gangs)}"
    if not price.interrupted:
        return f"{moves} of pods without devices, of {gangs}"
    verb = "interrupt" if price.pods > 1 else "interrupts"
    return f"{moves} that {verb} {_devices(price.interrupted)} of {gangs}"


def _headline(proposal: Proposal) -> str:
    best = "no cheaper moves do" if proposal.proven else "not proven to be the cheapest"
    return f"{proposal.gang} would fit after {summary(proposal)} ({best})"


def _gang_line(each: Disturbed) -> str:
    members = f"{len(each.moves)} of {each.members} pods"
    if each.members == 1:
        text = "a pod alone"
    elif each.stops:
        text = f"{members} move, all of it stops and starts again"
    else:
        text = f"{members} move, the others keep running"
    return f"{each.gang}, priority {each.priority}: {text}; {_devices(each.devices)} interrupted"


def _way(snapshot: Snapshot, move: Move) -> str:
    return f"{snapshot.nodes.name(move.source)} -> {snapshot.nodes.name(move.target)}"


def _name(move: Move, names: Names) -> str:
    return names.get(move.pod, f"pod {move.pod}")


def _then(proposal: Proposal) -> list[str]:
    used = ", ".join(f"{count} {short(level)}{_s(count)}" for level, count in proposal.plan.domains)
    return [f"then {proposal.gang} goes: {len(proposal.plan.pods)} members on {used}"]


def _unhelpful(answer: Unhelpful) -> list[str]:
    if answer.reason is NoHelp.FITS_NOW:
        return [f"{answer.gang}: {answer.reason}, nothing has to move"]
    sure = "" if answer.certain else " as far as was looked"
    found = [f"{answer.gang}: no moves are proposed: {answer.reason}{sure}"]
    if answer.detail:
        found.append(answer.detail)
    if answer.staying:
        found.append("pods on the nodes it could use that nothing may move:")
        found += [f"  {count} {reason}" for reason, count in answer.staying]
    return found


def to_dict(snapshot: Snapshot, answer: Answer, names: Names) -> dict[str, Plain]:
    """Return an answer as JSON values."""
    head: dict[str, Plain] = {"gang": answer.gang, "generation": answer.generation}
    if isinstance(answer, Unhelpful):
        staying: dict[str, Plain] = {str(reason): count for reason, count in answer.staying}
        return head | {
            "proposal": False,
            "reason": str(answer.reason),
            "detail": answer.detail,
            "certain": answer.certain,
            "staying": staying,
        }
    price = answer.price
    gangs: list[Plain] = [_disturbed(snapshot, each, names) for each in answer.disturbed]
    domains: dict[str, Plain] = dict(answer.plan.domains)
    return head | {
        "proposal": True,
        "proven": answer.proven,
        "price": {
            "priority": price.priority,
            "interrupted_milli": price.interrupted,
            "gangs": price.gangs,
            "pods": price.pods,
            "devices_milli": price.devices,
        },
        "disturbed": gangs,
        "then": {"members": len(answer.plan.pods), "domains": domains},
    }


def _disturbed(snapshot: Snapshot, each: Disturbed, names: Names) -> Plain:
    moves: list[Plain] = [
        {
            "pod": _name(move, names),
            "from": snapshot.nodes.name(move.source),
            "to": snapshot.nodes.name(move.target),
        }
        for move in each.moves
    ]
    return {
        "gang": each.gang,
        "priority": each.priority,
        "members": each.members,
        "stops": each.stops,
        "interrupted_milli": each.devices,
        "moves": moves,
    }


def _devices(milli: int) -> str:
    return f"{milli / _MILLI:g} device{_s(milli / _MILLI)}"


def _s(count: float) -> str:
    return "" if count == 1 else "s"
