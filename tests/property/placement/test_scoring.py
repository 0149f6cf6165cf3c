"""Scoring keeps no stale scores: whatever was cached, choices are those of a fresh start."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.placement.scoring.chooser import NodeChoice, NodeChooser
from muster.placement.scoring.mix import RequestMix
from muster.placement.scoring.potential import Gain, Worths, total
from muster.placement.scoring.shape import DEVICE, Shape
from muster.placement.scoring.stock import NodeStock

MODELS = ("", "A", "B")
SHAPES = (
    Shape(2000, 10, 0, 0),
    Shape(30_000, 10, 0, 0),
    Shape(3000, 10, 1, 810),
    Shape(12_000, 10, 1, 470),
    Shape(1000, 10, 1, 333),  # off the grid
    Shape(1000, 10, 1, 5),
    Shape(11_000, 40, 1, DEVICE),
    Shape(4000, 10, 1, DEVICE, frozenset({"A"})),
    Shape(4000, 10, 1, 320, frozenset({"A", "B"})),
    Shape(20_000, 10, 2, DEVICE),
    Shape(40_000, 10, 4, DEVICE),
)

nodes = st.lists(
    st.tuples(st.integers(1, 12), st.integers(0, 4), st.sampled_from(MODELS)),
    min_size=1,
    max_size=12,
)
steps = st.lists(
    st.tuples(st.sampled_from(("arrive", "place", "run", "end")), st.integers(0, 10)), max_size=60
)


def fleet(rows: list[tuple[int, int, str]]) -> NodeStock:
    return NodeStock(
        cpu=np.array([cores * 8000 for cores, _, _ in rows]),
        memory=np.full(len(rows), 200),
        holes=np.array([[DEVICE] * gpus + [0] * (4 - gpus) for _, gpus, _ in rows]),
        models=[model for _, _, model in rows],
        capacity=DEVICE * sum(gpus for _, gpus, _ in rows),
    )


def afresh(chooser: NodeChooser) -> NodeChooser:
    """Return a chooser without caches over copies of the same columns, at the same prices."""
    old = chooser.stock
    again = NodeStock(old.cpu, old.memory, old.holes.copy(), old.models, old.capacity)
    found = NodeChooser(again, RequestMix.restored(chooser.mix.dump()))
    found._adopt(chooser.prices)  # its own would be learned at another moment
    return found


def drive(rows: list[tuple[int, int, str]], moves: list[tuple[str, int]]) -> NodeChooser:
    chooser = NodeChooser(fleet(rows))
    running: list[tuple[Shape, NodeChoice]] = []
    for what, number in moves:
        shape = SHAPES[number]
        if what == "arrive":
            chooser.arrived(shape)
        elif what == "place":
            chooser.arrived(shape)
            choice = chooser.place(shape)
            running += [] if choice is None else [(shape, choice)]
        elif what == "run":
            running += [(shape, choice) for choice in chooser.place_run(shape, number)]
        elif running:
            shape, choice = running.pop(number % len(running))
            chooser.stock.give(shape, choice.node, choice.devices)
    return chooser


@given(nodes, steps)
@settings(deadline=None)
def test_cached_scores_equal_scores_from_scratch_to_the_last_bit(
    rows: list[tuple[int, int, str]], moves: list[tuple[str, int]]
) -> None:
    chooser = drive(rows, moves)
    fresh = afresh(chooser)
    for shape in SHAPES:
        np.testing.assert_array_equal(chooser.changes(shape), fresh.changes(shape))
        assert chooser.choose(shape) == fresh.choose(shape)


@given(nodes, steps, st.sampled_from(SHAPES))
@settings(deadline=None)
def test_the_change_that_is_scored_is_the_change_of_the_worth_of_the_whole_fleet(
    rows: list[tuple[int, int, str]], moves: list[tuple[str, int]], shape: Shape
) -> None:
    chooser = drive(rows, moves)
    before = total(chooser.stock, chooser.prices)
    choice = chooser.place(shape)
    if choice is not None:
        after = total(chooser.stock, chooser.prices)
        np.testing.assert_allclose(after - before, choice.change, atol=1e-6)


@given(nodes, steps)
@settings(deadline=None)
def test_one_node_and_many_nodes_are_scored_alike(
    rows: list[tuple[int, int, str]], moves: list[tuple[str, int]]
) -> None:
    chooser = drive(rows, moves)
    stock, prices = chooser.stock, chooser.prices
    worths = Worths(stock, prices)
    everywhere = np.arange(stock.nodes)
    for shape in SHAPES:
        gain = Gain(shape, prices)
        change, device = gain.of_rows(stock, worths, everywhere)
        for node in everywhere.tolist():
            one, where = gain.of_node(stock, worths, node)
            assert one == change[node]
            assert one == -np.inf or where == device[node]


@given(nodes, steps, st.sampled_from(SHAPES), st.integers(1, 30))
@settings(deadline=None)
def test_a_run_of_pods_goes_where_the_pods_go_one_by_one(
    rows: list[tuple[int, int, str]], moves: list[tuple[str, int]], shape: Shape, count: int
) -> None:
    together, single = drive(rows, moves), drive(rows, moves)
    choices = together.place_run(shape, count)
    one_by_one = []
    for _ in range(count):
        single.arrived(shape)
        one_by_one.append(single.place(shape))
    assert choices == [choice for choice in one_by_one if choice is not None]
    assert together.mix.dump() == single.mix.dump()


@given(nodes, steps)
@settings(deadline=None)
def test_nothing_is_ever_given_away_twice_and_what_ends_comes_back(
    rows: list[tuple[int, int, str]], moves: list[tuple[str, int]]
) -> None:
    stock = drive(rows, moves).stock
    assert (stock.cpu >= 0).all()
    assert (stock.memory >= 0).all()
    assert ((stock.holes >= 0) & (stock.holes <= DEVICE)).all()
    np.testing.assert_array_equal(stock.whole, (stock.holes == DEVICE).sum(axis=1))
