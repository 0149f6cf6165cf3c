"""The last decisions and the snapshots that they were made on.

A snapshot is immutable and shares what has not changed since with the live columns, so it costs
only the pages that were written after it. Only decisions that changed something are stored: plans
that were held, and the first refusal of each kind. There is a queue for plans and one for refusals,
so that a thousand refused gangs push out no plan. Repeated refusals are not stored;
``Planner.decisions`` has the last decision about each gang.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from muster.cluster.snapshot import Snapshot
from muster.decisions.answer import Answer, Planned
from muster.placement.question import Question


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredQuestion:
    """A question and its answer."""

    #: The state that the question was put to.
    snapshot: Snapshot
    question: Question
    answer: Answer


class History:
    """The last ``most`` plans and the last ``most`` refusals."""

    def __init__(self, most: int) -> None:
        self._plans: deque[AnsweredQuestion] = deque(maxlen=most)
        self._refusals: deque[AnsweredQuestion] = deque(maxlen=most)

    def __iter__(self) -> Iterator[AnsweredQuestion]:
        """Yield the decisions, oldest first."""
        found = [*self._plans, *self._refusals]
        return iter(sorted(found, key=lambda asked: asked.snapshot.generation))

    def note(self, asked: AnsweredQuestion) -> None:
        """Add a decision and drop the oldest of its kind."""
        queue = self._plans if isinstance(asked.answer, Planned) else self._refusals
        queue.append(asked)
