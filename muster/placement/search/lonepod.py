"""A pod that comes alone: where it strands the fewest GPUs.

Every host satisfies any wish for a level, so topology does not tell hosts apart and what
remains is the fleet: the pod goes where the worth of the free room falls least
(``scoring.potential``), or where the configured profile prefers. Hosts with room that
other plans keep as spares come last; caps on sets of nodes hold as for gangs. On the node the same
worth decides the device that a part is taken from.

Of hosts that are equal to that, the pod joins the company that has been there longest. Run
times have heavy tails: what has run for days runs on for days, what came a minute ago is
likely to end soon, and its host would then be free as a whole, unless another pod has joined it::

    h1  a a . .   since Monday       ◄── the next one: h1 stays in use anyway
    h2  b b . .   for five minutes       h2 is soon empty, for a pod that needs all of it

Of hosts that are equal to that too, the pod goes to the rack with the least room, then to the
block with the least, so that large racks stay whole for gangs.
"""

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import FEW, Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.podconstraints import PodClass
from muster.placement.scoring.holes import Floats
from muster.placement.scoring.potential import Gain, Worths
from muster.placement.scoring.prices import RoomPrices, recalled
from muster.placement.scoring.profiles import Profile, preference
from muster.placement.scoring.stock import NodeStock
from muster.placement.scoring.view import device_memory_of, prices_of, shape_of, stock_of
from muster.placement.search.arena import Arena
from muster.placement.tree import DomainTree, Flags, Ints
from muster.placement.world import World


def place_lone(arena: Arena) -> Steps[Ints | None]:
    """Return amounts per position that add up to 1, ``None`` where scoring does not decide.

    It does not while no pod of the model asks for a GPU, and where only the order in which
    gangs are placed decides a rule (spread constraints without room, labels to share).
    """
    if arena.limits.together_loose or not arena.leaf.any():
        return None
    prices = None
    if arena.board.scoring.profile is Profile.LEAST_STRANDED:
        prices = yield from prices_of(arena.world)
        if not prices.stranding:
            return None
    if len(arena.leaf) > FEW:
        yield
    for leaf in (arena.quiet, arena.leaf):
        if leaf is None or not leaf.any():
            continue
        found = yield from _best_of(arena, leaf, prices)
        if found is not None:
            return found
    return None


def _best_of(arena: Arena, leaf: Ints, prices: RoomPrices | None) -> Steps[Ints | None]:
    """Return the pod on the best of the positions with room in ``leaf``; ``None``: caps forbid."""
    has_pauses = len(leaf) > FEW
    positions = np.flatnonzero(leaf)
    rows = arena.board.topology.order[positions].astype(np.int64)
    stock = stock_of(arena.world, rows)
    if has_pauses:
        yield
    preferred = _preference(arena, stock, prices)
    if has_pauses:
        yield
    since = _in_use_since(arena.world, rows, preferred == preferred.max())
    if has_pauses:
        yield
    tied = preferred == preferred.max()
    tied &= since == since[tied].min()
    around = _room_around(arena.board.tree, leaf, positions, tied)
    if has_pauses:
        yield
    found = _first_within(arena, positions, np.lexsort((*around, since, -preferred)))
    if has_pauses:
        yield
    return found


def _in_use_since(world: World, rows: Ints, tied: Flags) -> Floats:
    """Return float64[rows]: when the oldest pod of each tied node row came there; others: inf.

    A pod without a known start is on its way: it came last.
    """
    since = np.full(world.snapshot.nodes.count, np.inf)
    if np.count_nonzero(tied) > 1:
        pods = world.snapshot.pods
        asked = np.zeros(len(since) + 1, dtype=np.bool_)  # the last for pods without a node
        asked[rows[tied]] = True
        known = np.flatnonzero(asked[pods.node.array()])
        node, started = pods.node[known], pods.started[known]
        np.minimum.at(since, node, np.where(started > 0, started, np.inf))
    return since[rows]


def _room_around(tree: DomainTree, leaf: Ints, positions: Ints, tied: Flags) -> list[Ints]:
    """Return int64[positions] per level, the widest first: the room of the domain of each.

    Nothing where at most one position is the best anyway.
    """
    if np.count_nonzero(tied) == 1:
        return []
    return [
        tree.sums(leaf, level, tree.host)[tree.at(level, positions)] for level in range(tree.host)
    ]


def _preference(arena: Arena, stock: NodeStock, prices: RoomPrices | None) -> Floats:
    """Return float64[rows of the stock], the higher the better."""
    memory = device_memory_of(arena.world.snapshot)
    shape = shape_of(arena.group.pod_class, memory)
    if prices is None:
        return preference(stock, shape, arena.board.scoring)
    change, _ = Gain(shape, prices).of_rows(stock, Worths(stock, prices), np.arange(stock.nodes))
    return change


def _first_within(arena: Arena, positions: Ints, order: NDArray[np.intp]) -> Ints | None:
    """Return the first position within all caps in an order of them."""
    for number in order.tolist():
        amounts = np.zeros_like(arena.leaf)
        amounts[positions[number]] = 1
        if all(cap_rule.within(amounts) for cap_rule in arena.cap_rules):
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
