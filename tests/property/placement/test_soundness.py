"""The last look at a plan beside the rules seat by seat, on seatings that keep or break them."""

import random
from dataclasses import replace

import numpy as np
from hypothesis import event as seen
from hypothesis import given
from hypothesis import strategies as st
from support.clusters.seatings import Case, Seats, broken, built, random_case

from muster.placement.decision import Plan
from muster.placement.soundness import breaches


def seated_anyhow(rng: random.Random, case: Case) -> Seats:
    """Seat those who came back on any hosts that are not cordoned, near others more often."""
    open_ = [n for n in range(len(case.hosts)) if n not in case.cordoned] or [0]
    held = [n for n in case.seats.values() if n in open_] or open_
    return {**case.seats, **{rank: rng.choice([*held, *open_]) for rank in case.back}}


def as_plan(case: Case, seats: Seats) -> tuple[object, Plan]:
    scene, key = built(case)
    snapshot = scene.snapshot
    view = snapshot.gang(key)
    assert view is not None
    ranks = snapshot.pods.rank[view.waiting].tolist()
    nodes = [snapshot.nodes.row(f"n{seats[rank]}") for rank in ranks]
    none = np.empty((len(ranks), 0), dtype=np.int32)
    rows = np.array(nodes, dtype=np.int32)
    plan = Plan(key, snapshot.generation, view.waiting, rows, none, view.waiting[:0], ())
    return snapshot, plan


@given(st.integers(0, 1 << 40))
def test_the_last_look_finds_a_breach_where_a_rule_is_broken_and_only_there(seed: int) -> None:
    rng = random.Random(seed)
    case = replace(random_case(seed), cordoned=frozenset())
    seats = seated_anyhow(rng, case)
    snapshot, plan = as_plan(case, seats)
    found = breaches(snapshot, plan, 0.0)
    seen("broken" if found else "sound")
    assert bool(found) == bool(broken(case, seats)), (case, seats, found)
