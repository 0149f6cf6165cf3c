"""What scoring has to learn before a pod that comes alone is placed (docs/placement/scoring.md)."""

from extender.engine import Engine
from extender.timeslice import Pace
from muster.cluster.events import PricesLearned
from muster.decisions.answer import to_learn
from muster.placement.question import Question


async def learn(engine: Engine, question: Question, pace: Pace) -> None:
    """Have the state know the prices that the question needs, where they are not known yet."""
    learned = await pace.drive(to_learn(engine.state.snapshot(), question))
    if learned is not None:
        engine.apply(PricesLearned(learned))
