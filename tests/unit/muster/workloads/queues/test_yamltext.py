"""YAML texts as values that know where they stand."""

import pytest

from muster.workloads.queues.yamltext import YamlError, YamlNode, parse


def test_scalars_stay_text_and_null_is_none() -> None:
    text = "a: 010\nb: true\nc: 'null'\nd: ~\ne:\nf: [1.50, null]\n"
    assert parse(text).plain() == {"a": "010", "b": "true", "c": "null", "f": ["1.50", None]}


def test_values_know_where_they_begin() -> None:
    found = parse("a:\n  - b: 1\n    c: 2\n")
    (one,) = (found.get("a") or found).items()
    inner = one.get("c")
    assert inner is not None
    assert (one.line, one.column, inner.line, inner.column) == (2, 5, 3, 8)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "~"])
def test_an_empty_text_is_null(text: str) -> None:
    assert parse(text).plain() is None


def test_only_the_first_document_counts() -> None:
    assert parse("a: 1\n---\nb: 2\n").plain() == {"a": "1"}


def test_an_alias_is_what_its_anchor_is() -> None:
    assert parse("a: &x [1, 2]\nb: *x\n").plain() == {"a": ["1", "2"], "b": ["1", "2"]}


def test_a_merged_map_gives_what_is_not_written() -> None:
    text = "a: &x {p: 1, q: 2}\nb: {<<: *x, p: 3}\nc: {<<: [*x, {r: 4}]}\n"
    found = parse(text).plain()
    assert isinstance(found, dict)
    assert found["b"] == {"p": "3", "q": "2"}
    assert found["c"] == {"p": "1", "q": "2", "r": "4"}


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("a: b: c\n", "line 1, column 5: "),
        ("a:\n\t- b\n", "line 2, column 1: "),
        ("a: [1, 2\n", "line 2, column 1: "),
        ("a: 1\nb: 2\na: 3\n", "line 3, column 4: key 'a' is there twice"),
        ("a: *x\n", "line 1, column 4: alias *x has no anchor before it"),
        ("a: &x [*x]\n", "line 1, column 8: alias *x has no anchor before it"),
        ("[a]: 1\n", "line 1, column 3: a key is a text"),
        ("a: {<<: 5}\n", "line 1, column 9: << takes a map"),
        ("a: \0\n", "line 1, column 1: "),
    ],
)
def test_an_error_begins_with_line_and_column(text: str, begin: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse(text)
    assert str(caught.value).startswith(begin)


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 50_000, "{a: " * 50_000])
def test_a_text_that_is_nested_too_deep_is_refused(text: str) -> None:
    with pytest.raises(YamlError, match="nested more than 100 deep"):
        parse(text)


def test_a_short_text_that_stands_for_a_large_one_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(YamlError, match="more than 200000 values"):
        parse("\n".join(lines))


def test_a_map_can_be_seen_without_a_key() -> None:
    assert parse("{a: 1, b: 2}").without("b").plain() == {"a": "1"}
    assert parse("[a]").without("b").plain() == ["a"]
    assert YamlNode("x", 1, 1).get("a") is None
