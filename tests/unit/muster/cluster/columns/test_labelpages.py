"""Labels of nodes as rows of a page: they read like dicts, and fill columns like dicts.

::

    page    same  {arch: x, host: h0, rack: r0}
            own    host ── h0 │ h1 │ h2
                   rack ── r0 │ r0 │ r1
"""

from collections.abc import Mapping, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.columns.labelpages import LabelPage, by_key

SAME = {"arch": "x", "host": "h0", "rack": "r0"}
OWN = {"host": ["h0", "h1", "h2"], "rack": ["r0", "r0", "r1"]}


def test_a_row_reads_like_the_dict_of_its_node() -> None:
    rows = list(LabelPage(SAME, OWN).rows(3))
    assert rows[2] == {"arch": "x", "host": "h2", "rack": "r1"}
    assert list(rows[1]) == ["arch", "host", "rack"]
    assert (len(rows[0]), rows[1].get("host"), rows[1].get("zone")) == (3, "h1", None)
    assert repr(rows[1]) == "{'arch': 'x', 'host': 'h1', 'rack': 'r0'}"
    with pytest.raises(KeyError, match="zone"):
        _ = rows[0]["zone"]


def test_what_all_nodes_have_alike_is_picked_once() -> None:
    page = LabelPage(SAME, OWN)
    assert page.pick(0, ("arch", "zone")) == ("x", None)
    assert page.pick(0, ("arch", "zone")) is page.pick(2, ("arch", "zone"))
    assert page.pick(2, ("arch", "rack")) == ("x", "r1")
    assert page.pick(1, ("zone",)) == (None,)


texts = st.sampled_from(("x", "y", "z"))
dicts = st.lists(st.dictionaries(st.sampled_from("abc"), texts, max_size=3), max_size=6)


@st.composite
def paged(draw: st.DrawFn) -> list[Mapping[str, str]]:
    """Draw a page of nodes that have the same keys."""
    keys = draw(st.permutations(("a", "b", "c")))[: draw(st.integers(0, 3))]
    count = draw(st.integers(1, 5))
    columns = {key: draw(st.lists(texts, min_size=count, max_size=count)) for key in keys}
    own = {key: each for key, each in columns.items() if len(set(each)) > 1}
    page = LabelPage({key: each[0] for key, each in columns.items()}, own)
    return list(page.rows(count))


def plainly(labels: Sequence[Mapping[str, str]]) -> dict[str, tuple[list[str], list[str | None]]]:
    """Return the values of each key, each once, and the value on each node."""
    keys = dict.fromkeys(key for one in labels for key in one)
    found = {key: [one.get(key) for one in labels] for key in keys}
    return {
        key: ([text for text in dict.fromkeys(each) if text is not None], each)
        for key, each in found.items()
    }


@given(parts=st.lists(dicts | paged(), max_size=4), order=st.randoms(use_true_random=False))
def test_rows_and_dicts_in_any_order_are_found_by_key_as_dicts_alone(
    parts: list[list[Mapping[str, str]]], order: Random
) -> None:
    labels = [one for part in parts for one in part]
    order.shuffle(labels)
    found = {
        found.key: (
            list(found.values),
            [None if value < 0 else found.values[value] for value in found.value.tolist()],
        )
        for found in by_key(labels)
    }
    wanted = plainly([dict(one) for one in labels])
    assert found == wanted
    assert list(found) == list(wanted)
