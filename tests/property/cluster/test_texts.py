"""Texts in columns, and names found by them, against strings and a dictionary.

::

    names come, go, and come again under other numbers ──► NameTable ──► find_all(Texts)
                                                                             ═══
                                                           one by one ──► find(text)
"""

from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.columns.paged import NameTable
from muster.cluster.columns.texts import (
    ABSENT,
    LONGEST,
    TextIndex,
    Texts,
    are_empty,
    some_of,
    words_of,
)

NAMES = st.one_of(
    st.integers(0, 30).map(lambda number: f"host-{number}"),
    st.text("ab\0", max_size=3),
    st.sampled_from(("", "ä", "a" * 7, "a" * 8, "a" * 9, "b" * LONGEST, "b" * (LONGEST + 1))),
    st.text(max_size=12),
)
PRINTABLE = NAMES.filter(lambda text: text.isprintable() or "\0" in text)
STEPS = st.lists(st.tuples(st.sampled_from(("add", "extend", "remove")), PRINTABLE), max_size=30)


def texts(values: list[str]) -> Texts:
    return Texts(words_of([value.encode() for value in values]))


@given(st.lists(PRINTABLE))
def test_texts_are_what_they_were_made_of(values: list[str]) -> None:
    found = texts(values)
    assert list(found) == values
    assert found[1:] == values[1:]
    assert found[::-1] == values[::-1]
    assert are_empty(found).tolist() == are_empty(values).tolist()
    places = are_empty(values).nonzero()[0]
    assert list(some_of(found, places)) == list(some_of(values, places))


def test_bytes_that_are_no_text_read_as_such_and_are_nobody() -> None:
    odd = Texts(words_of([b"a\xff", b"a"]))
    assert list(odd) == ["a\ufffd", "a"]
    assert TextIndex(["a\ufffd", "a"]).find(odd).tolist() == [ABSENT, 1]


@given(st.lists(st.one_of(PRINTABLE, st.none()), unique=True), st.lists(PRINTABLE, max_size=20))
def test_an_index_finds_the_numbers_of_texts(known: list[str | None], asked: list[str]) -> None:
    asked += [text for text in known if text is not None]
    findable = {
        text: number for number, text in enumerate(known) if text and len(text.encode()) <= LONGEST
    }
    found = TextIndex(known).find(texts(asked))
    assert found.tolist() == [findable.get(text, ABSENT) for text in asked]


@given(STEPS, STEPS, st.lists(PRINTABLE, min_size=1, max_size=20))
def test_names_asked_for_together_are_found_as_one_by_one(
    first: list[tuple[str, str]], then: list[tuple[str, str]], asked: list[str]
) -> None:
    names: NameTable[str] = NameTable()
    asked = [*asked, *(name for _, name in (*first, *then))] * 100
    for steps in (first, then):  # what has been looked up once is remembered
        for step, name in steps:
            number = names.find(name)
            if step == "remove" and number is not None:
                names.remove(number)
            elif step == "extend" and number is None and not names.has_free_ids:
                names.extend([name])
            elif step == "add":
                names.add(name)
        expected = [names.find(text) for text in asked]
        found = names.find_all(texts(asked)).tolist()
        assert found == [ABSENT if number is None else number for number in expected]
