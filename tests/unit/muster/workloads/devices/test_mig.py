"""MIG cards against NVIDIA's published tables.

MIG user guide, "Supported MIG Profiles": the number of instances of each profile that a
card can have, and (A100-40GB, "Figure: MIG profiles") which of them can stand together.
On one card with 7 compute and 8 memory slices::

    memory slice   0 1 2 3 4 5 6 7
    7g             ████████████████
    4g             ████████
    3g             ████████ ████████
    2g             ████ ████ ████
    1g             ██ ██ ██ ██ ██ ██ ██
"""

from collections.abc import Mapping

import pytest

from muster.cluster.devices.onenode import places
from muster.workloads.devices import mig

CARDS = mig.load()

PUBLISHED = {
    "NVIDIA-A100-SXM4-40GB": {"1g.5gb": 7, "1g.5gb+me": 1, "1g.10gb": 4, "2g.10gb": 3,
                              "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1},
    "NVIDIA-A100-SXM4-80GB": {"1g.10gb": 7, "1g.10gb+me": 1, "1g.20gb": 4, "2g.20gb": 3,
                              "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    "NVIDIA-H100-80GB-HBM3": {"1g.10gb": 7, "1g.10gb+me": 1, "1g.20gb": 4, "2g.20gb": 3,
                              "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    "NVIDIA-H100-NVL": {"1g.12gb": 7, "1g.12gb+me": 1, "1g.24gb": 4, "2g.24gb": 3,
                        "3g.47gb": 2, "4g.47gb": 1, "7g.94gb": 1},
    "NVIDIA-H200": {"1g.18gb": 7, "1g.18gb+me": 1, "1g.35gb": 4, "2g.35gb": 3,
                    "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1},
    "NVIDIA-B200": {"1g.23gb": 7, "1g.23gb+me": 1, "1g.45gb": 4, "2g.45gb": 3,
                    "3g.90gb": 2, "4g.90gb": 1, "7g.180gb": 1},
    "NVIDIA-GB200": {"1g.24gb": 7, "1g.47gb": 4, "2g.47gb": 3, "3g.95gb": 2, "4g.95gb": 1,
                     "7g.189gb": 1, "3g.93gb": 2, "7g.186gb": 1},
    "NVIDIA-GH200-144G-HBM3e": {"1g.18gb": 7, "1g.18gb+me": 1, "1g.36gb": 4, "2g.36gb": 3,
                                "3g.72gb": 2, "4g.72gb": 1, "7g.144gb": 1},
    "NVIDIA-GH200-480GB": {"1g.12gb": 7, "3g.48gb": 2, "7g.96gb": 1},
    "NVIDIA-PG506-232": {"1g.12gb": 7, "3g.48gb": 2, "7g.96gb": 1},
    "NVIDIA-A800-SXM4-80GB": {"1g.10gb": 7, "1g.20gb": 4, "7g.80gb": 1},
    "NVIDIA-A800-SXM4-40GB": {"1g.5gb": 7, "1g.10gb": 4, "7g.40gb": 1},
    "NVIDIA-A100X": {"1g.10gb": 7, "7g.80gb": 1},
    "NVIDIA-H800": {"1g.10gb": 7, "7g.80gb": 1},
    "NVIDIA-H800-NVL": {"1g.12gb": 7, "3g.47gb": 2},
    "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": {
        "1g.24gb": 4, "1g.24gb+gfx": 4, "1g.24gb+me": 1, "1g.24gb+me.all": 1, "1g.24gb-me": 4,
        "2g.48gb": 2, "2g.48gb+gfx": 2, "2g.48gb+me.all": 1, "2g.48gb-me": 2, "4g.96gb": 1,
        "4g.96gb+gfx": 1,
    },
    "NVIDIA-RTX-PRO-5000-Blackwell": {"1g.24gb": 2, "2g.48gb": 1},
    "NVIDIA-A30": {"1g.6gb": 4, "1g.6gb+me": 1, "2g.12gb": 2, "4g.24gb": 1},
}  # fmt: skip


def card(product: str) -> mig.Card:
    found = mig.card_of(CARDS, product, ())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("product", "profile", "count"),
    [(product, *row) for product, table in PUBLISHED.items() for row in table.items()],
)
def test_a_card_has_as_many_instances_as_published(product: str, profile: str, count: int) -> None:
    found = card(product).profile(profile)
    assert found is not None
    assert places(found.masks, 0) == count


def table(text: str) -> list[dict[str, int]]:
    """Return counts per line, "4 2 1" meaning 4g, 2g and 1g."""
    rows = []
    for line in text.split("\n"):
        row: dict[str, int] = {}
        for slices in line.split():
            row[slices] = row.get(slices, 0) + 1
        rows.append(row)
    return [row for row in rows if row]


# A100 and H100: the combinations the user guide draws, each line one card.
ALLOWED = table("""
7
4 3
4 2 1
4 1 1 1
3 3
3 2 1
3 1 1 1
2 2 3
2 1 1 3
1 1 2 3
1 1 1 1 3
2 2 2 1
2 2 1 1 1
2 1 1 1 1 1
1 1 1 1 1 1 1
""")
FORBIDDEN = table("""
7 1
4 4
4 3 1
4 2 2
3 3 1
3 3 3
4 1 1 1 1
3 2 2 1
2 2 2 2
2 2 2 1 1
1 1 1 1 1 1 1 1
3 1 1 1 1 1
""")
NAMES = {
    "NVIDIA-A100-SXM4-40GB": {"7": "7g.40gb", "4": "4g.20gb", "3": "3g.20gb", "2": "2g.10gb",
                              "1": "1g.5gb"},
    "NVIDIA-H100-80GB-HBM3": {"7": "7g.80gb", "4": "4g.40gb", "3": "3g.40gb", "2": "2g.20gb",
                              "1": "1g.10gb"},
    "NVIDIA-H200": {"7": "7g.141gb", "4": "4g.71gb", "3": "3g.71gb", "2": "2g.35gb",
                    "1": "1g.18gb"},
}  # fmt: skip


@pytest.mark.parametrize("product", NAMES)
@pytest.mark.parametrize("counts", ALLOWED, ids=str)
def test_combinations_that_are_published_stand_together(
    product: str, counts: Mapping[str, int]
) -> None:
    wanted = {NAMES[product][slices]: count for slices, count in counts.items()}
    placed = mig.pack(card(product), wanted)
    assert placed is not None
    assert {p.name: len(p.masks) for p in placed} == wanted
    bits = [bits for profile in placed for _, bits in profile.masks]
    assert sum(bits) == sum(set(bits))  # no two share a slice
    assert all(not a & b for i, a in enumerate(bits) for b in bits[:i])


@pytest.mark.parametrize("product", NAMES)
@pytest.mark.parametrize("counts", FORBIDDEN, ids=str)
def test_combinations_beyond_the_card_do_not_stand_together(
    product: str, counts: Mapping[str, int]
) -> None:
    wanted = {NAMES[product][slices]: count for slices, count in counts.items()}
    assert mig.pack(card(product), wanted) is None


def test_there_is_one_set_of_media_engines() -> None:
    h100 = card("NVIDIA-H100-80GB-HBM3")
    assert mig.pack(h100, {"1g.10gb+me": 1, "1g.10gb": 6})
    assert mig.pack(h100, {"1g.10gb+me": 2}) is None


def test_one_name_means_other_slices_on_another_card() -> None:
    h200, a100 = card("NVIDIA-H200"), card("NVIDIA-A100-SXM4-40GB")
    wide, narrow = a100.profile("1g.10gb"), card("NVIDIA-H100-80GB-HBM3").profile("1g.10gb")
    assert wide is not None
    assert narrow is not None
    assert (places(wide.masks, 0), places(narrow.masks, 0)) == (4, 7)
    assert h200.profile("1g.10gb") is None


def test_a_card_is_found_by_the_longest_name_that_fits_else_by_its_profiles() -> None:
    assert card("NVIDIA-H100-NVL").profile("7g.94gb")
    assert card("NVIDIA-H100-PCIe").profile("7g.80gb")
    found = mig.card_of(CARDS, "unheard of", ("1g.18gb", "3g.71gb"))
    assert found is not None
    assert found.profile("7g.141gb")
    assert mig.card_of(CARDS, "unheard of", ("9g.1gb",)) is None


def test_the_instances_of_a_node_are_laid_out_on_as_few_equal_cards_as_hold_them() -> None:
    a100 = card("NVIDIA-A100-SXM4-40GB")
    sevens = mig.layout(a100, {"1g.5gb": 56}, 128)
    assert sevens is not None
    assert len(sevens) == 8
    balanced = mig.layout(a100, {"1g.5gb": 16, "2g.10gb": 8, "3g.20gb": 8}, 128)
    assert balanced is not None
    assert len(balanced) == 8
    assert len(set(balanced)) == 1
    unequal = mig.layout(a100, {"7g.40gb": 1, "1g.5gb": 7}, 128)
    assert unequal is not None
    assert [len(each[0].masks) for each in unequal] == [1, 7]
    assert mig.layout(a100, {"7g.40gb": 3}, 2) is None


@pytest.mark.parametrize(
    ("counts", "together"),
    [
        ({"1g.24gb+me.all": 1, "1g.24gb-me": 3}, True),
        ({"1g.24gb+me.all": 1, "2g.48gb-me": 1, "1g.24gb-me": 1}, True),
        ({"1g.24gb+me.all": 1, "1g.24gb": 1}, False),
        ({"2g.48gb+me.all": 1, "2g.48gb": 1}, False),
        ({"1g.24gb+gfx": 2, "2g.48gb": 1}, True),
        ({"1g.24gb+me": 1, "1g.24gb": 3}, True),
        ({"1g.24gb+me": 1, "1g.24gb+me.all": 1}, False),
    ],
)
def test_an_instance_with_all_media_engines_stands_beside_those_with_none(
    counts: Mapping[str, int], *, together: bool
) -> None:
    found = mig.pack(card("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"), counts)
    assert (found is not None) is together
