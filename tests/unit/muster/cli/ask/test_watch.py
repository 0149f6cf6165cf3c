"""What `--watch` prints of an answer that comes again."""

from muster.cli.ask import watch


def test_of_a_table_the_lines_that_are_new_are_printed() -> None:
    before, now = "GANG  PHASE\na     Pending\nb     Bound", "GANG  PHASE\na     Bound\nb     Bound"
    assert watch.changes(before, now, whole=False) == ["a     Bound"]
    assert watch.changes(now, now, whole=False) == []


def test_json_is_printed_whole_or_not_at_all() -> None:
    assert watch.changes("[1]", "[2]", whole=True) == ["[2]"]
    assert watch.changes("[1]", "[1]", whole=True) == []
