"""The two phases of the search on hand-made arrays, without a cluster."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clusters.scene import Scene
from support.clusters.trees import tree

from muster.cluster.resumable import Steps, run
from muster.placement.request import TopologyWish
from muster.placement.rules.caps import CapRule, count_up, trim
from muster.placement.search.fewest import choose, fewest, sizes_of
from muster.placement.search.scopes import Placing, labelled_only, place
from muster.placement.search.slices import partial_last, place_slices
from muster.placement.tree import ROOT, DomainTree, domains_used, tree_of


def leaf(*amounts: int) -> np.ndarray:
    return np.array(amounts, dtype=np.int64)


def placed(work: Steps[Placing | None]) -> np.ndarray | None:
    found = run(work)
    return None if found is None else found.amounts


def used(found: np.ndarray | None) -> list[int]:
    assert found is not None
    return found.tolist()


# --- choosing from a pool -------------------------------------------------------------


def test_the_fewest_domains_are_chosen_and_of_these_the_tightest() -> None:
    assert choose(leaf(16, 16, 12, 8, 8, 3), 26).tolist() == [0, 2]


def test_one_domain_that_fits_exactly_beats_the_largest() -> None:
    assert choose(leaf(16, 9, 12), 9).tolist() == [1]


def test_a_pool_that_is_too_small_is_an_error() -> None:
    with pytest.raises(ValueError, match="less than"):
        choose(leaf(1, 2), 4)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.data())
def test_no_other_choice_is_smaller_or_tighter(pool: list[int], data: st.DataObject) -> None:
    if not sum(pool):
        return
    need = data.draw(st.integers(1, sum(pool)))
    found = choose(np.array(pool), need).tolist()
    options = [
        (size, sum(pick) - need)
        for size in range(1, len(pool) + 1)
        for pick in itertools.combinations(pool, size)
        if sum(pick) >= need
    ]
    assert (len(found), sum(pool[i] for i in found) - need) == min(options)


def test_a_pool_of_thousands_is_chosen_by_best_fit() -> None:
    pool = np.concatenate([np.full(3000, 8), np.full(10, 3)])
    found = choose(pool, 8 * 2000 + 2)
    assert len(found) == 2001
    assert pool[found].sum() == 8 * 2000 + 3


def test_fewest_says_none_when_everything_together_does_not_suffice() -> None:
    assert fewest(sizes_of(leaf(2, 0, 2)), 5) is None


# --- up and down ----------------------------------------------------------------------


def test_a_gang_goes_to_the_one_rack_that_holds_it() -> None:
    #  zone 0: racks [4 4] [4 4 4]     zone 1: rack [4 4]
    found = placed(place(tree([2, 3], [2]), leaf(4, 4, 4, 4, 4, 4, 4), [], TopologyWish(), 12))
    assert used(found) == [0, 0, 4, 4, 4, 0, 0]


def test_of_two_racks_that_hold_it_the_fuller_one_is_taken() -> None:
    found = placed(place(tree([2], [2]), leaf(8, 8, 8, 2), [], TopologyWish(), 9))
    assert used(found) == [0, 0, 8, 1]


def test_fewer_hosts_count_more_than_less_left_over() -> None:
    found = placed(place(tree([3], [4]), leaf(8, 8, 8, 4, 4, 4, 4), [], TopologyWish(), 16))
    assert used(found) == [8, 8, 0, 0, 0, 0, 0]


def test_a_required_level_is_never_crossed() -> None:
    assert placed(place(tree([2, 2]), leaf(4, 4, 4, 4), [], TopologyWish(required=1), 9)) is None
    assert (
        placed(place(tree([2, 2]), leaf(4, 4, 4, 4), [], TopologyWish(required=0), 9)) is not None
    )


def test_a_preferred_level_means_the_fewest_domains_of_it() -> None:
    #  zone 0 would need 3 racks, zone 1 needs 2
    shape = tree([1, 1, 1], [2, 2])
    found = placed(place(shape, leaf(4, 4, 4, 4, 4, 4, 4), [], TopologyWish(preferred=1), 12))
    assert used(found)[:3] == [0, 0, 0]
    assert domains_used(shape, found)[:2] == (1, 2)


def test_required_and_preferred_together_give_one_zone_with_the_fewest_racks() -> None:
    shape = tree([2, 2], [1, 1, 1, 1])
    wish = TopologyWish(required=0, preferred=1)
    found = placed(place(shape, leaf(4, 4, 4, 4, 4, 4, 4, 4), [], wish, 16))
    assert domains_used(shape, found) == (1, 2, 4)


def test_unlabelled_nodes_are_no_rack_but_can_be_used() -> None:
    shape = tree([2, 2])
    labelled = (np.array([True]), np.array([True, False]), np.ones(4, bool))
    shape = replace(shape, labelled=labelled)
    capacities = leaf(1, 1, 8, 8)
    assert labelled_only(shape, TopologyWish(required=1)).tolist() == [True, True, False, False]
    assert labelled_only(shape, TopologyWish(required=0)) is None
    assert placed(place(shape, capacities, [], TopologyWish(required=1), 9)) is None
    assert used(placed(place(shape, capacities, [], TopologyWish(), 9))).count(0) == 2


def test_the_same_arrays_give_the_same_answer() -> None:
    shape, capacities = tree([3, 3], [2, 4]), leaf(*[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])
    first = used(placed(place(shape, capacities, [], TopologyWish(), 20)))
    assert all(
        used(placed(place(shape, capacities, [], TopologyWish(), 20))) == first for _ in range(3)
    )


def brute_force(
    shape: DomainTree, capacities: list[int], wish: TopologyWish, need: int
) -> int | None:
    """Return the fewest domains at the level that counts, ``None`` when nothing fits."""
    sums = [shape.sums(np.array(capacities), level, shape.host) for level in range(3)]
    if wish.required == ROOT:
        regions = [np.ones(shape.size, dtype=bool)]
    else:
        owner = shape.owner(wish.required, shape.host)
        regions = [owner == d for d in range(shape.domains(wish.required))]
    level = max(wish.preferred, wish.required, 0)
    fewest_found = []
    for region in regions:
        inside = sorted(
            {int(d) for d in shape.at(level, np.flatnonzero(region))},
        )
        sizes = [int(sums[level][d]) for d in inside]
        fewest_found += [
            k
            for k in range(1, len(sizes) + 1)
            if any(sum(pick) >= need for pick in itertools.combinations(sizes, k))
        ][:1]
    return min(fewest_found, default=None)


@given(
    st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), min_size=1, max_size=3),
    st.data(),
)
def test_a_fit_is_found_whenever_there_is_one_with_the_fewest_domains(
    racks: list[list[int]], data: st.DataObject
) -> None:
    shape = tree(*racks)
    capacities = data.draw(st.lists(st.integers(0, 4), min_size=shape.size, max_size=shape.size))
    need = data.draw(st.integers(1, 20))
    required = data.draw(st.integers(ROOT, 1))
    preferred = data.draw(st.integers(ROOT, 2))
    wish = TopologyWish(required=required, preferred=preferred)
    found = placed(place(shape, np.array(capacities), [], wish, need))
    expected = brute_force(shape, capacities, wish, need)
    assert (found is None) == (expected is None)
    if found is not None:
        assert found.sum() == need
        assert (found <= capacities).all()
        assert domains_used(shape, found)[max(preferred, required, 0)] == expected
        assert required == ROOT or domains_used(shape, found)[required] == 1


# --- cap rules -------------------------------------------------------------------------


def test_one_per_rack_is_counted_on_the_way_up() -> None:
    shape = tree([2, 2], [2])
    one_per_rack = CapRule(np.array([0, 0, 1, 1, 2, 2], dtype=np.int32), leaf(1, 1, 1), level=1)
    counts = count_up(shape, leaf(4, 4, 4, 4, 4, 4), [one_per_rack])
    assert [c.tolist() for c in counts[:2]] == [[2, 1], [1, 1, 1]]
    found = placed(place(shape, leaf(4, 4, 4, 4, 4, 4), [one_per_rack], TopologyWish(), 3))
    assert shape.sums(found, 1, 2).tolist() == [1, 1, 1]


def test_a_budget_across_the_tree_limits_every_domain_it_touches() -> None:
    shape = tree([2, 2])
    budget = CapRule(np.array([0, -1, 0, -1], dtype=np.int32), leaf(3))
    counts = count_up(shape, leaf(4, 4, 4, 4), [budget])
    assert counts[1].tolist() == [7, 7]
    assert counts[0].tolist() == [11]
    found = placed(place(shape, leaf(4, 4, 4, 4), [budget], TopologyWish(), 11))
    assert budget.within(found)


def test_trim_keeps_the_roomiest_nodes_of_a_set() -> None:
    cap_rule = CapRule(np.array([0, 0, 0, -1], dtype=np.int32), leaf(5))
    assert trim(leaf(2, 4, 3, 9), [cap_rule]).tolist() == [0, 4, 1, 9]


@given(
    st.lists(st.integers(0, 3), min_size=6, max_size=6),
    st.lists(st.integers(0, 4), min_size=6, max_size=6),
    st.lists(st.integers(0, 5), min_size=4, max_size=4),
    st.integers(1, 20),
    st.integers(ROOT, 1),
)
def test_caps_that_cut_across_the_tree_leave_the_search_complete(
    codes: list[int], capacities: list[int], caps: list[int], need: int, required: int
) -> None:
    shape = tree([2, 1], [3])
    cap_rule = CapRule(np.array(codes, dtype=np.int32), np.array(caps))
    found = placed(
        place(shape, np.array(capacities), [cap_rule], TopologyWish(required=required), need)
    )
    spans = (
        [(0, 6)]
        if required == ROOT
        else [shape.span(required, d) for d in range(shape.domains(required))]
    )
    room = [
        sum(
            min(sum(capacities[i] for i in range(*span) if codes[i] == code), caps[code])
            for code in range(4)
        )
        for span in spans
    ]
    assert (found is not None) == (max(room) >= need)
    assert found is None or (cap_rule.within(found) and found.sum() == need)


# --- slices ---------------------------------------------------------------------------


def test_slices_are_whole_in_their_rack() -> None:
    #  racks hold 7, 4 and 9: slices of 4 make 1 + 1 + 2, so 16 fit and 17 do not
    shape, wish = tree([2, 1, 2]), TopologyWish(slice_size=4, slice_level=1)
    capacities = leaf(3, 4, 4, 5, 4)
    found = placed(place_slices(shape, capacities, [], wish, 16))
    assert shape.sums(found, 1, 2).tolist() == [4, 4, 8]
    assert placed(place_slices(shape, capacities, [], wish, 20)) is None


def test_a_partial_slice_takes_what_is_left_beside_whole_ones() -> None:
    shape, wish = tree([2, 1, 2]), TopologyWish(slice_size=4, slice_level=1)
    found = placed(place_slices(shape, leaf(3, 4, 4, 4, 4), [], wish, 19))
    assert shape.sums(found, 1, 2).tolist() == [7, 4, 8]
    slots = partial_last(shape, wish, found)
    assert shape.at(1, slots).tolist() == [1] * 4 + [2] * 8 + [0] * 7


@given(
    st.lists(st.integers(0, 4), min_size=8, max_size=8),
    st.integers(1, 24),
    st.integers(1, 5),
    st.integers(ROOT, 0),
)
def test_slices_fit_exactly_when_counting_says_so(
    capacities: list[int], need: int, size: int, required: int
) -> None:
    shape = tree([2, 3], [1, 2])
    wish = TopologyWish(required=required, slice_size=size, slice_level=1)
    found = placed(place_slices(shape, np.array(capacities), [], wish, need))
    racks = shape.sums(np.array(capacities), 1, 2).tolist()
    rest = need % size
    groups = [racks] if required == ROOT else [racks[:2], racks[2:]]
    fits = any(
        sum(r // size for r in group) * size >= need
        or (
            sum(r // size for r in group) * size >= need - rest
            and any(r % size >= rest for r in group)
        )
        for group in groups
    )
    assert (found is not None) == fits
    if found is not None:
        assert found.sum() == need
        assert (found <= capacities).all()
        shares = shape.sums(found, 1, 2) % size
        assert sorted(shares.tolist())[:-1] == [0] * 3


def test_nodes_without_labels_are_domains_of_their_own_from_the_hosts_upwards() -> None:
    #  block a: rack r1 of two hosts, two hosts without a rack    no block: rack r2 of two hosts
    scene = Scene("""
        a/r1  n1 n2
        a/-   n3 n4
        -/r2  n5 n6
        -/-   n7
    """)
    found = tree_of(scene.snapshot.topology)
    assert found.starts[1].tolist() == [0, 2, 3, 4, 6]
    assert found.labelled[1].tolist() == [True, False, False, True, False]
    assert found.starts[0].tolist() == [0, 4, 6]
    assert found.labelled[0].tolist() == [True, False, False]
    assert found.along[0].tolist() == [0, 0, 0, 0, 1, 1, 2]


def test_a_level_that_no_node_has_says_nothing() -> None:
    found = tree_of(Scene("-/r1 n1 n2\n-/r2 n3").snapshot.topology)
    assert found.starts[0].tolist() == [0]
