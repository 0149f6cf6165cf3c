"""The exact search on hand-made arrays, beside plain enumeration."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.clusters.trees import tree

from muster.cluster.resumable import run
from muster.placement.exact.cheapest import CheapestAmounts, DomainShare, Layer, Quest, cheapest
from muster.placement.exact.hostvectors import equal_stock, mixed_stock, with_fewer_kinds
from muster.placement.exact.polish import polished
from muster.placement.exact.slicekinds import Packing, in_turn, pack
from muster.placement.exact.treeprogram import (
    NEVER,
    HostOption,
    Item,
    SearchBudget,
    TreeTask,
    prices,
    sweep,
)
from muster.placement.ranks.ringorder import RingHosts, in_ring
from muster.placement.search.dealing import deal
from muster.placement.tree import DomainTree, domains_used

PLENTY = 1 << 40


shapes = st.lists(st.lists(st.integers(1, 2), min_size=1, max_size=2), min_size=1, max_size=3).map(
    lambda racks: tree(*racks)
)


def search(
    shape: DomainTree,
    leaf: Sequence[int],
    need: int,
    order: Sequence[int],
    layers: tuple[Layer, ...] = (),
) -> CheapestAmounts:
    quest = Quest(shape, equal_stock(np.array(leaf), need), (need,), order, layers)
    found = run(cheapest(quest, SearchBudget(PLENTY)))
    assert found is not None
    return found


def used(shape: DomainTree, amounts: np.ndarray, order: Sequence[int]) -> tuple[int, ...]:
    counts = domains_used(shape, amounts)
    return tuple(counts[level] for level in order)


# --- the sweep ------------------------------------------------------------------------


def test_the_price_of_a_domain_is_paid_once_however_many_items_are_taken() -> None:
    items = [Item((0,), (HostOption((1,), 1),)), Item((0,), (HostOption((1,), 1),))]
    solved = run(sweep(TreeTask((2,), (np.array([10]),), items), SearchBudget(PLENTY)))
    assert solved is not None
    assert [solved.price((n,)) for n in range(3)] == [0, 11, 12]
    assert solved.back((2,)) == [(0, (1,)), (1, (1,))]


def test_what_cannot_be_given_away_has_no_price() -> None:
    solved = run(
        sweep(TreeTask((3,), (), [Item((), (HostOption((2,), 1),))]), SearchBudget(PLENTY))
    )
    assert solved is not None
    assert solved.price((2,)) == 1
    assert solved.price((3,)) >= NEVER


def test_a_budget_that_does_not_last_gives_no_answer_rather_than_a_poor_one() -> None:
    task = TreeTask((3,), (), [Item((), (HostOption((2,), 1),))])
    assert run(sweep(task, SearchBudget(task.ticks() - 1))) is None
    assert run(sweep(task, SearchBudget(task.ticks()))) is not None


def test_an_objective_outweighs_all_that_come_after_it() -> None:
    assert prices([3, 9, 4]) == [50, 5, 1]
    assert prices([1 << 40, 1 << 30]) == [1, 0]  # the second does not fit beside the first


# --- what hosts take ------------------------------------------------------------------


def test_a_host_lists_the_mixes_that_no_other_mix_exceeds() -> None:
    # 8 GPUs: workers of 4, helpers of 1; two workers, or one and four helpers, or five
    leaves, free = np.array([[2], [5]]), np.array([[8]])
    stock = run(mixed_stock(leaves, free, np.array([[4], [1]]), (2, 5)))
    assert set(stock.options[0]) == {(2, 0), (1, 4), (0, 5)}
    assert set(with_fewer_kinds([(1, 4), (2, 0)])) == {(1, 4), (2, 0), (0, 4)}


# --- equal pods -----------------------------------------------------------------------


def placements(leaf: Sequence[int], need: int) -> Iterator[np.ndarray]:
    for amounts in itertools.product(*(range(room + 1) for room in leaf)):
        if sum(amounts) == need:
            yield np.array(amounts)


@given(shapes, st.data())
def test_no_placement_of_equal_pods_uses_fewer_domains(
    shape: DomainTree, data: st.DataObject
) -> None:
    leaf = data.draw(st.lists(st.integers(0, 3), min_size=shape.size, max_size=shape.size))
    need = data.draw(st.integers(1, 8))
    order = data.draw(st.permutations(range(3)))
    found = search(shape, leaf, need, order)
    options = [used(shape, each, order) for each in placements(leaf, need)]
    if not options:
        assert found.amounts is None
        return
    assert found.amounts is not None
    assert found.amounts.sum() == need
    assert (found.amounts[0] <= leaf).all()
    assert used(shape, found.amounts[0], order) == min(options)


def test_of_two_racks_with_room_the_one_that_is_left_emptier_is_kept() -> None:
    #  block a: racks of 4+4 and 4+1      nine are never asked for: five go to the tighter rack
    found = search(tree([2, 2]), [4, 4, 4, 1], 5, (0, 1, 2))
    assert found.amounts is not None
    assert found.amounts[0].tolist() == [0, 0, 4, 1]


# --- slices ---------------------------------------------------------------------------


def packed(slices: Sequence[tuple[int, int]], kinds: Sequence[int]) -> Packing:
    numbers = in_turn(slices, np.arange(len(kinds)))
    found = pack(slices, numbers, np.array(kinds), max(kinds) + 1)
    assert found is not None
    return found


@given(shapes, st.data())
def test_slices_of_slices_are_placed_whenever_they_can_be(
    shape: DomainTree, data: st.DataObject
) -> None:
    leaf = data.draw(st.lists(st.integers(0, 3), min_size=shape.size, max_size=shape.size))
    slices = data.draw(st.sampled_from([((1, 2),), ((0, 2),), ((0, 4), (1, 2)), ((1, 3),)]))
    need = data.draw(st.integers(1, 8))
    packing = packed(slices, [0] * need)
    found = search(shape, leaf, need, (0, 1, 2), layers=packing.layers)
    options = [
        used(shape, each, (0, 1, 2))
        for each in placements(leaf, need)
        if any(whole(shape, hosts, slices) for hosts in set(orderings(shape, each)))
    ]
    if not options:
        assert found.amounts is None
        return
    assert found.amounts is not None
    assert used(shape, found.amounts[0], (0, 1, 2)) == min(options)
    hosts = deal(shape, packing, found.shares)
    assert np.bincount(hosts, minlength=shape.size).tolist() == found.amounts[0].tolist()
    assert whole(shape, tuple(hosts.tolist()), slices)


def orderings(shape: DomainTree, amounts: np.ndarray) -> Iterator[tuple[int, ...]]:
    """Yield hosts in rank order, racks and blocks in every order."""
    blocks = [np.flatnonzero(shape.along[0] == b) for b in range(shape.domains(0))]
    per_block = []
    for hosts in blocks:
        racks = [hosts[shape.along[1][hosts] == r] for r in np.unique(shape.along[1][hosts])]
        per_block.append(list(itertools.permutations(racks)))
    for order in itertools.permutations(range(len(blocks))):
        for chosen in itertools.product(*(per_block[b] for b in order)):
            hosts = np.concatenate([np.concatenate(racks) for racks in chosen])
            yield tuple(np.repeat(hosts, amounts[hosts]).tolist())


def whole(shape: DomainTree, hosts: Sequence[int], slices: Sequence[tuple[int, int]]) -> bool:
    return all(
        len({int(shape.along[level][s]) for s in hosts[first : first + size]}) == 1
        for level, size in slices
        for first in range(0, len(hosts), size)
    )


def test_leaders_and_workers_of_a_slice_are_one_make_up() -> None:
    #  ranks  L w w   L w w   L w
    layers = packed([(1, 3)], [0, 1, 1, 0, 1, 1, 0, 1]).layers
    assert layers == (Layer(1, (((1, 2), 2), ((1, 1), 1))),)


def test_a_wider_slice_that_is_no_multiple_has_no_layers() -> None:
    slices = [(0, 3), (1, 2)]
    assert pack(slices, in_turn(slices, np.arange(6)), np.zeros(6, dtype=np.int64), 1) is None


def test_shares_are_dealt_to_ranks_make_up_by_make_up() -> None:
    #  one rack takes two slices, the other the last: ranks 0-3 and 4-5
    shares = (
        DomainShare(0, (2,), (DomainShare(0, (3,)), DomainShare(1, (1,)))),
        DomainShare(1, (1,), (DomainShare(2, (2,)),)),
    )
    hosts = deal(tree([2, 1]), packed([(1, 2)], [0] * 6), shares)
    assert hosts.tolist() == [0, 0, 0, 1, 2, 2]


# --- rings ----------------------------------------------------------------------------


def crossings(shape: DomainTree, path: Sequence[int]) -> list[int]:
    ring = [*path, path[0]]
    return [sum(int(at[a] != at[b]) for a, b in itertools.pairwise(ring)) for at in shape.along]


@given(shapes, st.data())
def test_no_other_order_of_hosts_has_fewer_crossings(
    shape: DomainTree, data: st.DataObject
) -> None:
    rows = st.lists(st.integers(0, 1), min_size=shape.size, max_size=shape.size)
    amounts = [np.array(data.draw(rows), dtype=np.int64) for _ in range(2)]
    assume(all(each.any() for each in amounts))
    assume(sum(int(each.sum()) for each in amounts) <= 8)
    found = np.concatenate(in_ring(shape, amounts)).tolist()
    orders = itertools.product(*(itertools.permutations(np.flatnonzero(a)) for a in amounts))
    assert crossings(shape, found) == min(crossings(shape, [*a, *b]) for a, b in orders)


def test_pods_change_places_until_the_ring_cannot_be_shorter() -> None:
    #  two racks of two hosts; A and B everywhere: 2 pods of each per host are possible
    shape = tree([2, 2])
    amounts = np.array([[1, 1, 1, 1], [1, 1, 1, 1]])
    options = [((0, 2), (1, 1), (2, 0))] * 4
    better = run(polished(shape, amounts, options))
    assert better.sum(axis=1).tolist() == [4, 4]
    assert (better.sum(axis=0) > 0).all()
    fabric = RingHosts(shape, np.arange(4), 2)
    cost = fabric.ring([np.flatnonzero(kind) for kind in better]).cost
    assert cost == fabric.least()


@pytest.mark.parametrize("need", [1, 5, 9])
def test_the_same_question_has_the_same_answer(need: int) -> None:
    shape, leaf = tree([2, 1], [2, 2]), [3, 1, 4, 1, 5, 2, 6]
    first = search(shape, leaf, need, (0, 1, 2)).amounts
    assert first is not None
    assert all(
        np.array_equal(first, search(shape, leaf, need, (0, 1, 2)).amounts) for _ in range(3)
    )
