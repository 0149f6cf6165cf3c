"""What if some gangs were not there? The same question of the state without their pods."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muster.cluster.ids import GangKey
from muster.cluster.resumable import run
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView, Rows
from muster.decisions.answer import Answer, Question, answer


@dataclass(frozen=True, slots=True, eq=False)
class Supposed:
    """An answer from a supposed cluster. ``gone``: gang and how many of its pods held room."""

    question: Question
    gone: tuple[tuple[GangKey, int], ...]
    snapshot: Snapshot
    answer: Answer


def without(snapshot: Snapshot, question: Question, gangs: Sequence[GangKey]) -> Supposed:
    """Ask ``question`` of ``snapshot`` without all pods of ``gangs``. Unknown ones are ignored."""
    views = [view for view in map(snapshot.gang, gangs) if view is not None]
    pods = [_pods(view) for view in views]
    rows = np.concatenate([np.zeros(0, dtype=np.int32), *pods]).tolist()
    supposed = snapshot.overlay(without_pods=rows)
    held = snapshot.pods.node
    gone = tuple(
        (view.key, int(np.count_nonzero(held[mine] >= 0)))
        for view, mine in zip(views, pods, strict=True)
    )
    return Supposed(question, gone, supposed, run(answer(supposed, question)))


def _pods(view: GangView) -> Rows:
    states = (view.waiting, view.blocked, view.assumed, view.released, view.bound, view.leaving)
    return np.concatenate([*states, view.finished])
