"""Victims under disruption budgets on random small clusters, against every set there is.

::

    rack r0   h0 h1     as in test_making_room; up to three budgets, each for some of the gangs,
    rack r1   h2 h3     allow 0 to 6 pods to end
"""

from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st
from support.clusters.victimsets import cost, fits, sets

from loadtest.benches.room.cases import RoomCase, generate
from loadtest.benches.room.score import ASKED, question_of, running, state_of
from muster.cluster.events import PodUpserted
from muster.cluster.resumable import run
from muster.cluster.specs.podconstraints import LabelSelector, LabelSet, Operator, Requirement
from muster.decisions.roomplan import NoRoom, RoomAnswer, RoomPlan, room_for
from muster.placement.victims.costs import CostOrder
from muster.queueing.preemption.disruptionbudgets import DisruptionAllowance, NamespaceBudgets
from muster.queueing.preemption.rules import Keeps

NAMESPACE = "bench"


@dataclass(frozen=True)
class Budget:
    """One budget: names of gangs, and pods that may end."""

    gangs: frozenset[str]
    allowed: int

    def allows(self, ended: dict[str, tuple[int, ...]]) -> bool:
        """Return whether a set of victims may go."""
        return sum(len(ranks) for name, ranks in ended.items() if name in self.gangs) <= (
            self.allowed
        )


@st.composite
def budgeted(draw: st.DrawFn, most_jobs: int = 6) -> tuple[RoomCase, tuple[Budget, ...]]:
    """Draw a cluster, and budgets for its gangs."""
    case = generate(draw(st.integers(0, 1_000_000)), most_jobs, 2, 2)
    names = st.sampled_from(sorted(job.name for job in case.jobs))
    made = st.builds(Budget, st.frozensets(names, min_size=1), st.integers(0, 6))
    return case, tuple(draw(st.lists(made, min_size=1, max_size=3)))


def answer_of(case: RoomCase, budgets: tuple[Budget, ...]) -> RoomAnswer:
    """Put a case to the solver; each gang has a label of its own."""
    state = state_of(case)
    for job in case.jobs:
        for event in running(job):
            if isinstance(event, PodUpserted):
                labels = LabelSet(NAMESPACE, (("job", job.name),))
                state.apply(replace(event, labels=labels), now=0.0)
    known = NamespaceBudgets(
        DisruptionAllowance(
            f"{NAMESPACE}/{number}",
            LabelSelector((Requirement("job", Operator.IN, tuple(sorted(each.gangs))),)),
            each.allowed,
        )
        for number, each in enumerate(budgets)
    )
    question = replace(question_of(case, ASKED), budgets={NAMESPACE: known})
    return run(room_for(state.snapshot(), state.charges, question))


@given(budgeted())
@settings(max_examples=150)
def test_no_set_that_budgets_allow_costs_less_than_the_one_that_is_proven(
    drawn: tuple[RoomCase, tuple[Budget, ...]],
) -> None:
    """Whole gangs, and all choices of members above a minimum."""
    case, budgets = drawn
    answer = answer_of(case, budgets)
    allowed = (each for each in sets(case) if all(one.allows(each) for one in budgets))
    best = min((cost(case, each) for each in allowed if fits(case, each)), default=None)
    if isinstance(answer, NoRoom):
        assert best is None
        return
    assert answer.proven
    assert CostOrder().key(answer.cost) == best


@given(budgeted(most_jobs=30))
@settings(max_examples=100)
def test_no_budget_is_broken_however_many_gangs_there_are(
    drawn: tuple[RoomCase, tuple[Budget, ...]],
) -> None:
    """Counted from the case, not by the solver."""
    case, budgets = drawn
    answer = answer_of(case, budgets)
    if isinstance(answer, RoomPlan):
        ended = {one.gang.rpartition("/")[2]: one.rows for one in answer.victims}
        assert all(one.allows(ended) for one in budgets)
        return
    for held in answer.held:
        assert held.allowed < held.pods
    kept = dict(answer.keeps)
    assert kept.get(Keeps.HELD, 0) <= len([one for one in answer.held if one.gang])
