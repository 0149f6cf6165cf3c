"""The parts of scoring one by one: shapes, the mix, the worth of holes, prices, the stock."""

import numpy as np
import pytest

from muster.cluster.resumable import run
from muster.placement.scoring import holes
from muster.placement.scoring.chooser import NodeChooser
from muster.placement.scoring.holes import GRID, Demand
from muster.placement.scoring.mix import RequestMix
from muster.placement.scoring.prices import learn, untrained
from muster.placement.scoring.shape import DEVICE, Shape
from muster.placement.scoring.stock import NodeStock

HALF = Shape(4000, 1024, 1, 500)
WHOLE = Shape(8000, 1024, 1, DEVICE)
NODE = Shape(64_000, 1024, 8, DEVICE)


def stock(*nodes: tuple[int, list[int]], models: tuple[str, ...] = ()) -> NodeStock:
    """Return nodes given as (milli-CPU, holes of their devices)."""
    width = max(len(row) for _, row in nodes)
    return NodeStock(
        cpu=np.array([cpu for cpu, _ in nodes]),
        memory=np.full(len(nodes), 1 << 20),
        holes=np.array([row + [0] * (width - len(row)) for _, row in nodes]),
        models=models or [""] * len(nodes),
        capacity=DEVICE * sum(len(row) for _, row in nodes),
    )


def demand(**counts: float) -> Demand:
    """Return a demand by units, given as u81=1078, all asking for one CPU."""
    units = np.array(sorted(int(name[1:]) for name in counts))
    count = np.array([counts[f"u{unit}"] for unit in units])
    return Demand(units, count, np.full(len(units), 1000.0), np.zeros(len(units)))


NOTHING_OPEN = np.zeros(GRID + 1)


# --- shapes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("devices", "milli", "what"),
    [(1, 1001, "1..1000"), (0, 500, "1..1000"), (1, 0, "1..1000"), (2, 500, "one device only")],
)
def test_a_shape_that_no_device_can_serve_says_what_is_allowed(
    devices: int, milli: int, what: str
) -> None:
    with pytest.raises(ValueError, match=what):
        Shape(1000, 0, devices, milli)


def test_a_shape_with_a_negative_amount_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        Shape(-1, 0, 0, 0)


# --- the mix --------------------------------------------------------------------------


def test_a_mix_is_the_same_after_dump_and_restore() -> None:
    mix = RequestMix()
    mix.arrived(HALF, 3)
    mix.arrived(WHOLE)
    mix.arrived(HALF)
    again = RequestMix.restored(mix.dump())
    assert again.dump() == mix.dump() == ((HALF, 4), (WHOLE, 1))
    assert (again.arrivals, again.milli) == (5, 3000)


# --- what a hole is worth ---------------------------------------------------------------


def test_where_nothing_fractional_is_asked_a_hole_is_worth_its_size() -> None:
    nothing = Demand(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0), np.zeros(0))
    worth = run(holes.worths(nothing, NOTHING_OPEN, holes.linear()))
    np.testing.assert_array_equal(worth, holes.linear())


def test_worths_rise_from_nothing_to_a_whole_device() -> None:
    worth = run(holes.worths(demand(u81=1000, u47=700, u32=300), NOTHING_OPEN, holes.linear()))
    assert worth[0] == 0.0
    assert worth[GRID] == 1.0
    assert (np.diff(worth) > 0).all()


def test_a_hole_that_nobody_asks_for_is_worth_almost_nothing() -> None:
    worth = run(holes.worths(demand(u81=1000, u47=700), NOTHING_OPEN, holes.linear()))
    assert worth[19] < 0.05  # beside an 81 nothing fits
    assert 0.4 < worth[50] < 0.6  # half a device takes one of the two 47s


def test_a_size_is_worth_less_the_more_holes_of_it_lie_open() -> None:
    wanted = demand(u65=200, u32=200)
    many = NOTHING_OPEN.copy()
    many[35] = 500.0
    alone = run(holes.worths(wanted, NOTHING_OPEN, holes.linear()))
    crowded = run(holes.worths(wanted, many, holes.linear()))
    assert crowded[35] < alone[35] - 0.1


def test_the_demand_is_priced_alike_wherever_the_search_begins() -> None:
    wanted = demand(u81=1000, u47=700, u32=300, u16=70)
    start = np.linspace(0.0, 1.0, GRID + 1) ** 3
    ours = run(holes.worths(wanted, NOTHING_OPEN, holes.linear()))
    theirs = run(holes.worths(wanted, NOTHING_OPEN, start))
    paid = wanted.count @ holes.prices(wanted, ours)
    assert wanted.count @ holes.prices(wanted, theirs) == pytest.approx(paid, rel=0.02)


def test_the_price_of_the_whole_demand_is_close_to_the_fewest_devices_it_needs() -> None:
    wanted = demand(u50=100, u25=100)  # 50 + 25 devices, no waste
    worth = run(holes.worths(wanted, NOTHING_OPEN, holes.linear()))
    assert wanted.count @ holes.prices(wanted, worth) == pytest.approx(75.0, rel=0.05)


def test_using_up_a_device_takes_the_cpu_of_the_requests_that_fit_or_of_none() -> None:
    wanted = Demand(np.array([50]), np.array([100.0]), np.array([4000.0]), np.array([1e6]))
    need = holes.needs(wanted, run(holes.worths(wanted, NOTHING_OPEN, holes.linear())))
    assert need.mean[49] == 0.0
    assert 3000.0 < need.mean[50] < 4000.0  # now and then nobody comes
    assert 1.8 * need.mean[50] < need.mean[GRID] < 2.0 * 4000.0
    assert need.var[GRID] > need.var[50] > 0.9e6


# --- prices -----------------------------------------------------------------------------


def test_free_devices_together_are_dear_once_requests_for_them_outnumber_the_slots() -> None:
    room = stock((96_000, [DEVICE] * 8), (96_000, [DEVICE] * 8))
    mix = RequestMix()
    mix.arrived(WHOLE, 100)
    single = learn(mix, room, untrained(8)).slots
    mix.arrived(NODE, 100)
    several = learn(mix, room, untrained(8)).slots
    assert several[8] - several[7] > 10 * (single[8] - single[7]) > 0


def test_without_arrivals_prices_stay_as_they_are() -> None:
    before = untrained(8)
    assert learn(RequestMix(), stock((1000, [DEVICE])), before) is before


# --- the stock --------------------------------------------------------------------------


def test_a_stock_refuses_to_give_a_device_away_twice() -> None:
    room = stock((96_000, [DEVICE]))
    room.take(WHOLE, 0, (0,))
    with pytest.raises(ValueError, match="node row 0, device 0: -500"):
        room.take(HALF, 0, (0,))


def test_what_is_taken_and_given_back_leaves_a_stock_as_it_was() -> None:
    room = stock((96_000, [DEVICE] * 4))
    room.take(HALF, 0, (2,))
    assert (room.whole[0], room.holes[0].tolist()) == (3, [DEVICE, DEVICE, 500, DEVICE])
    room.give(HALF, 0, (2,))
    assert (int(room.whole[0]), int(room.cpu[0])) == (4, 96_000)


# --- choosing -----------------------------------------------------------------------------


def chooser(room: NodeStock, *mix: tuple[Shape, int]) -> NodeChooser:
    """Return a chooser that has seen a mix, with prices learned from it."""
    found = NodeChooser(room)
    for shape, count in mix:
        found.arrived(shape, count)
    found.arrived(HALF, 0)
    return found


def test_a_fraction_goes_into_the_hole_that_it_fills() -> None:
    room = stock((96_000, [DEVICE, DEVICE]), (96_000, [700, DEVICE]), (96_000, [500, DEVICE]))
    choice = chooser(room, (HALF, 50), (WHOLE, 50)).choose(HALF)
    assert choice is not None
    assert (choice.node, choice.devices) == (2, (0,))


def test_a_hungry_pod_goes_where_cpu_is_to_spare() -> None:
    hungry = Shape(16_000, 1024, 1, DEVICE)
    room = stock((32_000, [DEVICE] * 4), (104_000, [DEVICE] * 4))
    choice = chooser(room, (WHOLE, 50), (hungry, 10)).choose(hungry)
    assert choice is not None
    assert choice.node == 1


def test_a_pod_without_gpu_spares_the_cpu_that_free_devices_need() -> None:
    room = stock((64_000, [DEVICE] * 8), (64_000, [DEVICE, 0, 0, 0, 0, 0, 0, 0]))
    choice = chooser(room, (WHOLE, 50)).choose(Shape(8000, 1024, 0, 0))
    assert choice is not None
    assert (choice.node, choice.devices) == (1, ())


def test_of_equal_nodes_the_first_is_taken() -> None:
    room = stock(*[(96_000, [DEVICE] * 8)] * 5)
    choice = chooser(room, (WHOLE, 5)).choose(WHOLE)
    assert choice is not None
    assert choice.node == 0


def test_only_nodes_of_an_allowed_model_are_taken() -> None:
    room = stock((96_000, [DEVICE]), (96_000, [DEVICE]), models=("T4", "P100"))
    picky = Shape(4000, 1024, 1, 500, frozenset({"P100", "V100"}))
    found = chooser(room, (picky, 1))
    assert [c.node for c in found.place_run(picky, 5)] == [1, 1]
    assert found.choose(picky) is None
