"""The output of `muster replay --json`: all that is in the text, and what the text leaves out."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

from muster.cluster.dump.codec import encode
from muster.cluster.resumable import run
from muster.cluster.snapshot import Snapshot
from muster.decisions.answer import Answer, Planned
from muster.decisions.record import text
from muster.decisions.recording import RecordingSource
from muster.decisions.replay import ReplayVerdict, Rerun
from muster.decisions.suppositions import SupposedAnswer
from muster.placement.decision import Wait
from muster.placement.question import Question
from muster.placement.reasons.perdomain import candidates

_PLACE: Final = (
    "pod",
    "uid",
    "node",
    "spares",
    "devices",
    "rank",
)  # muster.decisions.record.written

Object = dict[str, object]


def replayed(source: RecordingSource, snapshot: Snapshot, reruns: Sequence[Rerun]) -> Object:
    """Return all replayed decisions, in the order of the dump."""
    verdicts = Counter(each.verdict for each in reruns)
    return {
        "source": encode(source),
        "cluster": snapshot.cluster,
        "generation": snapshot.generation,
        "identical": verdicts[ReplayVerdict.IDENTICAL],
        "different": verdicts[ReplayVerdict.DIFFERENT],
        "not_recorded": verdicts[ReplayVerdict.UNRECORDED],
        "decisions": [_rerun(each) for each in reruns],
    }


def supposed(found: SupposedAnswer) -> Object:
    """Return what would be decided in a supposed cluster."""
    gone = [{"gang": key, "pods_on_nodes": pods} for key, pods in found.gone]
    return {"without": gone, **_decision(found.snapshot, found.question, found.answer)}


def _rerun(rerun: Rerun) -> Object:
    entry = rerun.recorded.entry
    return {
        "made_before_the_dump": entry.made,
        "replay": rerun.verdict.value,
        "difference": rerun.difference,
        "planner": encode(entry.note),
        **_decision(rerun.snapshot, entry.question, rerun.answer),
    }


def _decision(snapshot: Snapshot, question: Question, answer: Answer) -> Object:
    head, *places = text(snapshot, answer).split(b"\n")
    found: Object = {
        "gang": question.gang,
        "generation": snapshot.generation,
        "question": encode(question),
        "answer": json.loads(head),
    }
    if isinstance(answer, Planned):
        found["pods"] = [dict(zip(_PLACE, json.loads(place), strict=True)) for place in places]
    if isinstance(answer, Planned | Wait):
        rooms = candidates(snapshot, question)
        found["candidates"] = encode(run(rooms))
    return found
