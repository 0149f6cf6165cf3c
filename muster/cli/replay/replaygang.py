"""The output of `muster replay --gang`: all questions about one gang, with details."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from muster.apiwire.gangs import GangRow
from muster.cli.ask.views import age, columns, gang_facts
from muster.cluster.ids import NO_ROW, GangKey
from muster.cluster.resumable import run
from muster.cluster.snapshot import Snapshot
from muster.decisions.answer import Answer, Deferred, Planned
from muster.decisions.record import outcome
from muster.decisions.recording import Note, RecordingSource
from muster.decisions.recordtext import sentences
from muster.decisions.replay import Rerun
from muster.decisions.suppositions import SupposedAnswer
from muster.placement.decision import Reject, Wait
from muster.placement.question import Question
from muster.placement.reasons.explanation import CLUSTER, short
from muster.placement.reasons.perdomain import Candidates, candidates
from muster.queueing.assembly import Idle, Incomplete, NotBefore

MOST_ROWS: Final = 20  # of a table; --json has all
_MOST_NAMES: Final = 8
_AS_ABOVE: Final = "the same answer as above, for the same reasons"

Row = tuple[str, ...]


def in_full(source: RecordingSource, reruns: Sequence[Rerun]) -> str:
    """Return everything about one gang: at the time of the dump, then earlier decisions."""
    parts: list[str] = []
    known: list[str] = []
    for each in reruns:
        now = list(_answered(each.snapshot, each.recorded.entry.question, each.answer))
        parts += [_facts(each, source), *(now if now != known else [_AS_ABOVE])]
        known = now
    return "\n\n".join(parts)


def supposed(found: SupposedAnswer) -> str:
    """Return what would be decided in a supposed cluster."""
    gone = ", ".join(f"{key} (pods on nodes: {pods})" for key, pods in found.gone)
    facts = columns([("Gang", found.question.gang), ("What if", f"without {gone}")])
    return "\n\n".join([facts, *_answered(found.snapshot, found.question, found.answer)])


def placed(source: RecordingSource, snapshot: Snapshot, key: GangKey, *, as_json: bool) -> str:
    """Return the nodes of a gang about which nothing is decided any more."""
    stands_on = _nodes_of(snapshot, key)
    if as_json:
        nodes = [{"domain": at, "node": node, "pods": pods} for at, node, pods in stands_on]
        return json.dumps({"gang": key, "generation": snapshot.generation, "nodes": nodes})
    levels = snapshot.levels
    head = (short(levels[-2]).upper() if len(levels) > 1 else "CLUSTER", "NODE", "PODS")
    rows = [(at, node, str(pods)) for at, node, pods in stands_on]
    facts = columns(gang_facts(row_of(snapshot, key), source.now))
    why = "no member waits, and its decision is too old to be recorded (dump.keepDecisions)"
    return "\n\n".join([facts, why, *([_table(head, rows, "nodes")] if rows else [])])


def _nodes_of(snapshot: Snapshot, key: GangKey) -> list[tuple[str, str, int]]:
    """Return (domain above the host, node, members on it) in the order of the topology."""
    view = snapshot.gang(key)
    if view is None:
        return []
    members = np.concatenate([view.assumed, view.released, view.bound, view.leaving])
    nodes, counts = np.unique(snapshot.pods.node[members], return_counts=True)
    topology, host = snapshot.topology, len(snapshot.levels) - 1
    found = []
    for node, count in zip(nodes.tolist(), counts.tolist(), strict=True):
        domain = int(topology.domain(host)[node]) if node >= 0 else NO_ROW
        path = topology.path(host, domain)[:-1] if domain != NO_ROW else ()
        found.append(("/".join(filter(None, path)), snapshot.nodes.name(node), count))
    return sorted(found)


def row_of(snapshot: Snapshot, key: GangKey) -> GangRow:
    """Return a gang as the extender's API shows it."""
    view = snapshot.gang(key)
    if view is None:
        return GangRow(key, "gone")
    spec = view.spec
    return GangRow(
        gang=key,
        phase=view.phase.value,
        priority=view.priority,
        queue=view.queue,
        min=None if spec is None else spec.min_count,
        size=None if spec is None else spec.size,
        waiting=len(view.waiting),
        blocked=len(view.blocked),
        assumed=len(view.assumed),
        released=len(view.released),
        bound=len(view.bound),
        finished=len(view.finished),
        submitted_at=view.submitted_at,
        skips=view.skips,
        reason=view.last_reason,
    )


def how(rerun: Rerun) -> tuple[str, str]:
    """Return a decision and why, in a few words each."""
    return outcome(rerun.answer), _why(rerun.answer, rerun.recorded.entry.question.now)


def placed_on(rerun: Rerun) -> str:
    """Return where a plan goes, "" for an answer that is no plan."""
    return _why(rerun.answer, 0.0) if isinstance(rerun.answer, Planned) else ""


def stands(note: Note, snapshot: Snapshot, source: RecordingSource) -> str:
    """Return what the planner was going to do with a gang when the dump was taken."""
    where = {"to do": "about to be looked at", "parked": "parked until room appears"}
    parts = [where.get(note.listed, "not on the planner's list")]
    if note.next_look is not None:
        parts.append(f"looked at again in {max(0.0, note.next_look - source.now):.1f} s")
    if note.said is not None:
        since = snapshot.generation - note.said.generation
        when = "on this very state" if not since else f"{since:,} generations before"
        parts.append(f"last answer {note.said.outcome}, {note.said.reason!r}, {when}")
    return ", ".join(parts)


def _why(answer: Answer, now: float) -> str:
    match answer:
        case Planned(plan):
            used = ", ".join(f"{count} {short(level)}" for level, count in plan.domains)
            return f"{len(plan.pods)} pod{'' if len(plan.pods) == 1 else 's'}: {used}"
        case Wait() | Reject():
            return answer.reason
        case Incomplete():
            return f"{answer.present} of {answer.needed} members are here"
        case NotBefore(at):
            return f"more members may come for {at - now:.1f} s"
        case Deferred(until):
            return f"left alone for {until - now:.1f} s: its release was refused"
        case Idle():
            return "held back by gates of others, or terminating"


# --- one question ---------------------------------------------------------------------


def _facts(rerun: Rerun, source: RecordingSource) -> str:
    entry = rerun.recorded.entry
    question = entry.question
    facts: list[Row] = [*gang_facts(row_of(rerun.snapshot, question.gang), question.now)]
    if entry.made:
        ago = age(source.now - question.now)
        facts.append(
            ("Decided", f"{ago} before the dump, on generation {rerun.snapshot.generation:,}")
        )
    else:
        facts.append(("Planner", stands(entry.note, rerun.snapshot, source)))
    if question.refused:
        facts.append(("Refused", f"by kube-scheduler, left out: {_some(question.refused)}"))
    if question.network:
        facts.append(("Network", question.network))
    if question.quota:
        facts.append(("Quota", question.quota))
    facts += [("Flavor", flavor.flavor) for flavor in question.flavors]
    if question.most is not None:
        facts.append(("Quota", f"at most {question.most} of the waiting members"))
    if question.kept:
        facts.append(("Left free", f"for lost members of other gangs: {_some(question.kept)}"))
    facts.append(("Replay", rerun.verdict + (f": {rerun.difference}" if rerun.difference else "")))
    return columns(facts)


def _answered(snapshot: Snapshot, question: Question, answer: Answer) -> Iterator[str]:
    """Yield an answer in sentences, then the tables that belong to it."""
    view = snapshot.gang(question.gang)
    if view is not None:
        yield "\n".join(sentences(answer, view, question.now))
    if isinstance(answer, Planned):
        yield _places(snapshot, answer)
    if isinstance(answer, Planned | Wait):
        found = run(candidates(snapshot, question))
        if found is not None:
            yield _domains(found)


def _places(snapshot: Snapshot, planned: Planned) -> str:
    head = ("RANK", "POD", "NODE", "SPARES", "DEVICES")
    rows = [
        (
            str(place.rank),
            snapshot.pods.names[row],
            place.node,
            ", ".join(place.spares),
            ", ".join(place.devices.get(place.node, ())),
        )
        for row, place in zip(planned.plan.pods.tolist(), planned.assignments, strict=True)
    ]
    return _table(head, rows, "pods")


def _domains(found: Candidates) -> str:
    """Return the domains with room, to compare the decision with."""
    level = "cluster" if found.level == CLUSTER else short(found.level)
    head = (level.upper(), "MEMBERS", "NODES", "SUITABLE", f"FREE {found.resource}")
    rows = [
        (
            row.domain,
            f"{row.fits} of {found.needed}",
            str(row.nodes),
            str(row.suitable),
            f"{row.free} of {row.total}",
        )
        for row in found.rows
    ]
    must = "the members must share one" if found.required else "they need not share one"
    title = f"Room by {level}" + ("" if found.level == CLUSTER else f" ({must}):")
    return title + "\n" + _table(head, rows, f"{level}s")


def _table(head: Row, rows: Sequence[Row], what: str) -> str:
    more = len(rows) - MOST_ROWS
    tail = [f"… and {more:,} more {what}; --json has them"] if more > 0 else []
    return "\n".join([columns([head, *rows[:MOST_ROWS]]), *tail])


def _some(names: Iterable[str]) -> str:
    known = sorted(names)
    more = len(known) - _MOST_NAMES
    return ", ".join(known[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
