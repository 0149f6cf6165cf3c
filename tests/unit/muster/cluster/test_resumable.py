"""Slices: nothing is lost or out of order, and no slice does more than its share."""

import random

from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.resumable import ITEMS_PER_STEP, run, sorted_order


def _names(count: int) -> list[str]:
    names = [f"host-{number:06}" for number in range(count)]
    random.Random(count).shuffle(names)
    return names


@given(st.lists(st.text(max_size=4), unique=True, max_size=40))
def test_the_sliced_sort_is_the_sort(keys: list[str]) -> None:
    assert [keys[index] for index in run(sorted_order(keys)).tolist()] == sorted(keys)


def test_many_keys_are_sorted_across_all_parts() -> None:
    keys = _names(5 * ITEMS_PER_STEP + 3)
    assert [keys[index] for index in run(sorted_order(keys)).tolist()] == sorted(keys)


def test_a_sort_of_many_keys_pauses_often() -> None:
    pauses = sum(1 for _ in sorted_order(_names(16 * ITEMS_PER_STEP)))
    assert pauses >= 2 * 16  # while the keys are dealt out, and after every part
