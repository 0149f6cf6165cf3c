"""A pod that comes alone: where it strands the fewest GPUs.

Every host satisfies any wish for a level, so topology does not tell hosts apart and what
remains is the fleet: the pod goes where the worth of the free room falls least
(``scoring.potential``), or where the profile says that was configured. Hosts whose room
other plans keep as spares come last; caps on sets of nodes hold as for gangs. On the node the same
worth says which device a part is taken from.
"""

import numpy as np

from cluster.constraints import PodClass
from cluster.snapshot import Snapshot
from cluster.steps import Steps
from placement.arena import Arena
from placement.scoring.holes import Floats
from placement.scoring.potential import Gain, Worths
from placement.scoring.prices import Prices, recalled
from placement.scoring.profiles import Profile, preference
from placement.scoring.stock import Stock
from placement.scoring.view import device_memory_of, prices_of, shape_of, stock_of
from placement.tree import Ints
from placement.world import World


def place_lone(arena: Arena) -> Steps[Ints | None]:
    """Return amounts per position that add up to 1, ``None`` where scoring has no say.

    It has none while no pod of the model asks for a GPU, and where only the order in which
    gangs are placed settles a rule (spread constraints without room, labels to share).
    """
    if arena.limits.together_loose or not arena.leaf.any():
        return None
    scoring = arena.world.scoring
    prices = None
    if scoring.profile is Profile.LEAST_STRANDED:
        prices = yield from prices_of(arena.world)
        if not prices.stranding:
            return None
    yield
    for leaf in (arena.quiet, arena.leaf):
        if leaf is None or not leaf.any():
            continue
        positions = np.flatnonzero(leaf)
        stock = stock_of(arena.world, arena.board.topology.order[positions].astype(np.int64))
        yield
        found = _first_within(arena, positions, _preference(arena, stock, prices))
        yield
        if found is not None:
            return found
    return None


def _preference(arena: Arena, stock: Stock, prices: Prices | None) -> Floats:
    """Return float64[rows of the stock], the higher the better."""
    memory = device_memory_of(arena.world.snapshot)
    shape = shape_of(arena.group.pod_class, memory)
    if prices is None:
        return preference(stock, shape, arena.world.scoring)
    change, _ = Gain(shape, prices).of_rows(stock, Worths(stock, prices), np.arange(stock.nodes))
    return change


def _first_within(arena: Arena, positions: Ints, preferred: Floats) -> Ints | None:
    """Return the best position within all caps; of equals the first in tree order."""
    for number in np.argsort(-preferred, kind="stable").tolist():
        amounts = np.zeros_like(arena.leaf)
        amounts[positions[number]] = 1
        if all(family.within(amounts) for family in arena.families):
            return amounts
    return None


def device_for(snapshot: Snapshot, node: int, pod_class: PodClass) -> int | None:
    """Return the device of a node on which a part of one is worth least, by learned prices.

    ``None``: nothing was learned, or the pod asks for something else.
    """
    learned, view = snapshot.learned, snapshot.devices
    shape = shape_of(pod_class, device_memory_of(snapshot))
    if learned is None or not shape.fractional or len(learned.slots) <= len(view.slots(node)):
        return None
    stock = stock_of(World(snapshot), np.array([node]))
    prices = recalled(learned)
    gain, device = Gain(shape, prices).of_node(stock, Worths(stock, prices), 0)
    return None if gain == -np.inf else device
