"""The last decisions with the snapshots they were made on.

A snapshot is immutable and shares what has not changed since with the live columns, so one
more costs the pages that were written after it. Kept are decisions that changed something:
plans that were held, and the first refusal of a kind, each in a row of its own. A
thousand gangs that are refused push out no plan, and being looked at in vain again and
again leaves no trace at all; ``Planner.decisions`` has the last word on each.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from muster.cluster.snapshot import Snapshot
from muster.decisions.answer import Answer, Planned
from muster.placement.question import Question


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredQuestion:
    """A question, the snapshot it was put to, and the answer."""

    snapshot: Snapshot
    question: Question
    answer: Answer


class History:
    """The last ``keep`` plans and the last ``keep`` refusals; none with ``keep`` 0."""

    def __init__(self, keep: int) -> None:
        self._plans: deque[AnsweredQuestion] = deque(maxlen=keep)
        self._refusals: deque[AnsweredQuestion] = deque(maxlen=keep)

    def __iter__(self) -> Iterator[AnsweredQuestion]:
        """Yield what is kept, oldest first."""
        kept = [*self._plans, *self._refusals]
        return iter(sorted(kept, key=lambda asked: asked.snapshot.generation))

    def note(self, asked: AnsweredQuestion) -> None:
        """Keep one more and give up the oldest of its kind."""
        row = self._plans if isinstance(asked.answer, Planned) else self._refusals
        row.append(asked)
