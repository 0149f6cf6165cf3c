"""What fits in a domain while units come and go, against a count of all its nodes.

::

    h0 ████ a0      one unit on a node: counted once, when the trial begins
    h1 ██▒▒ a1 b0   two units: counted anew with each step
"""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loadtest.benches.room.cases import NOW, generate
from loadtest.benches.room.score import ASKED, state_of
from muster.cluster.resumable import run
from muster.placement.moves.movablepods import MovePrices
from muster.placement.moves.proposals import question_arenas
from muster.placement.question import Question
from muster.placement.request import GangRequest, read
from muster.placement.victims.domaintrial import DomainTrial
from muster.placement.victims.freedtable import FreedTable, freed_table
from muster.placement.victims.ground import Ground, ground_of
from muster.placement.victims.units import GivingUnit, UnitSet, units_of

SEEDS = st.integers(0, 100_000)
STEPS = 30


def table_of(seed: int) -> tuple[FreedTable, UnitSet]:
    """Return all units of a random cluster, and none of them chosen."""
    snapshot = state_of(generate(seed)).snapshot()
    question = Question(ASKED, now=NOW)
    request = read(snapshot, question)
    assert isinstance(request, GangRequest)
    ground = ground_of(snapshot, request, run(question_arenas(snapshot, question, request)))
    prices = MovePrices(snapshot)
    views = [view for view in map(snapshot.gang, snapshot.gangs()) if view is not None]
    units = [unit for view in views for unit in units_of(prices, view, 1.0)]
    return freed_table(ground, units), UnitSet(prices)


def counted(ground: Ground, chosen: list[GivingUnit], low: int, high: int) -> list[int]:
    """Return the members of each kind that fit, node by node."""
    free = ground.free + ground.freed_by(chosen)
    return [int(takes[low:high].sum()) for takes in ground.takes(free)]


@given(SEEDS)
def test_a_trial_counts_as_many_members_as_the_nodes_of_its_domain_take(seed: int) -> None:
    table, chosen = table_of(seed)
    ground, draw = table.ground, random.Random(seed)
    for domain in range(ground.tree.domains(ground.level)):
        trial = DomainTrial.of(table, domain)
        for _ in range(STEPS):
            unit = draw.choice(table.units)
            if unit in chosen.chosen:
                chosen.drop(unit)
                trial.drop(unit)
            elif chosen.allows(unit):
                chosen.add(unit)
                trial.add(unit)
            assert trial.fits == counted(ground, chosen.chosen, trial.low, trial.high)
        for unit in chosen.chosen.copy():
            chosen.drop(unit)
            trial.drop(unit)
        assert trial.fits == counted(ground, [], trial.low, trial.high)


@given(SEEDS)
def test_a_trial_knows_what_each_unit_frees_in_its_domain(seed: int) -> None:
    table, _ = table_of(seed)
    ground = table.ground
    for domain in range(ground.tree.domains(ground.level)):
        trial = DomainTrial.of(table, domain)
        here = np.zeros(ground.free.shape[1], dtype=np.bool_)
        here[trial.low : trial.high] = True
        for unit in table.units:
            freed = ground.freed_by([unit])[ground.scarce]
            assert trial.gain(unit) == int(freed[here & ground.able].sum())
        nodes = [at for unit in table.units for at, _ in trial.freed(unit)]
        assert trial.has_shared == (len(nodes) > len(set(nodes)))
