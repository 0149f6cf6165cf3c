"""Where instances go on a GPU.

memory slices   0 1 2 3 4 5 6 7
1g              x x x x x x x        3g  [0-3] [4-7]
2g             [0 1][2 3][4 5]       4g  [0-3]
"""

from dataclasses import replace

import pytest
from support.devices.migcards import profiles

from deviceplugin.mig.layouts import LayoutError
from deviceplugin.mig.placing import InstanceSlot, place

H100 = profiles("H100-80")


def placed(counts: dict[str, int], *standing: str, in_use: tuple[str, ...] = ()) -> list[str]:
    slots = place(H100, counts, {_slot(s) for s in standing}, {_slot(s) for s in in_use})
    return [f"{slot.profile}@{slot.start}" for slot in slots]


def _slot(text: str) -> InstanceSlot:
    name, _, start = text.partition("@")
    return InstanceSlot(name, int(start))


def test_small_ones_go_where_no_larger_one_can_start() -> None:
    assert placed({"1g.10gb": 1}) == ["1g.10gb@6"]
    assert placed({"1g.20gb": 1}) == ["1g.20gb@6"]


def test_two_small_ones_leave_the_end_to_one_with_twice_the_memory() -> None:
    assert placed({"1g.10gb": 2}) == ["1g.10gb@4", "1g.10gb@5"]
    assert placed({"1g.10gb": 2, "1g.20gb": 1})[-1] == "1g.20gb@6"


def test_a_3g_leaves_the_place_of_a_4g() -> None:
    assert placed({"3g.40gb": 1}) == ["3g.40gb@4"]


def test_what_stands_stays_though_an_empty_gpu_would_be_cut_elsewhere() -> None:
    """And the new one goes beside it, so that 4-7 stay whole."""
    assert placed({"1g.10gb": 2}, "1g.10gb@0") == ["1g.10gb@0", "1g.10gb@1"]


def test_as_many_as_possible_of_those_that_stand_are_kept() -> None:
    standing = ("1g.10gb@0", "1g.10gb@4", "2g.20gb@2")
    wanted = {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 1}
    assert placed(wanted, *standing) == ["1g.10gb@0", "2g.20gb@2", "3g.40gb@4"]


def test_what_is_in_use_stays_though_the_rest_would_be_better_elsewhere() -> None:
    wanted = {"3g.40gb": 1, "1g.10gb": 1}
    assert placed(wanted, "1g.10gb@5", in_use=("1g.10gb@5",)) == ["3g.40gb@0", "1g.10gb@5"]


def test_a_layout_that_does_not_fit_around_what_is_in_use_is_refused() -> None:
    with pytest.raises(LayoutError, match=r"around what is in use: 1g.10gb@5"):
        placed({"2g.20gb": 3, "1g.10gb": 1}, in_use=("1g.10gb@5",))


def test_what_is_in_use_and_not_in_the_layout_is_refused() -> None:
    with pytest.raises(LayoutError, match=r"1 of 1g.10gb are in use and the layout has 0"):
        placed({"7g.80gb": 1}, in_use=("1g.10gb@5",))


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"1g.10gb": 8}, "8 of 1g.10gb do not fit; 7 would"),
        ({"3g.40gb": 1, "2g.20gb": 3}, "3 of 2g.20gb do not fit beside 1 of 3g.40gb; 2 would"),
        ({"7g.80gb": 1, "1g.10gb": 1}, "1 of 1g.10gb do not fit beside 1 of 7g.80gb; 0 would"),
        ({"1g.10gb+me": 2}, r"2 of 1g.10gb\+me do not fit; 1 would"),
        ({"1g.5gb": 1}, "profile 1g.5gb is none of this GPU's; it has 1g.10gb"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused_by_the_profile(
    counts: dict[str, int], said: str
) -> None:
    with pytest.raises(LayoutError, match=said):
        placed(counts)


def test_no_more_than_the_driver_allows_are_placed_though_there_is_room() -> None:
    limited = [replace(profile, most=2) for profile in H100]
    with pytest.raises(LayoutError, match=r"3 of 1g.10gb do not fit; 2 would"):
        place(limited, {"1g.10gb": 3})
