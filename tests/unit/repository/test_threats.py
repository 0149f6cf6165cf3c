"""docs/threats.md says which test tries which attack; here, that there is such a test."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
TESTS = ROOT / "tests"
ROW = re.compile(r"^\| .* \| (test_\w+\.py) \| `(test_\w+)` \|$", re.MULTILINE)


def text() -> str:
    return (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")


def rows() -> set[tuple[str, str]]:
    return set(ROW.findall(text()))


def in_files(name: str) -> set[str]:
    found = (path.read_text(encoding="utf-8") for path in TESTS.rglob(name))
    return {test for source in found for test in re.findall(r"def (test_\w+)", source)}


def test_every_attack_is_tried_where_the_table_says() -> None:
    assert [row for row in rows() if row[1] not in in_files(row[0])] == []


def test_every_line_of_the_table_names_a_test() -> None:
    lines = [line for line in text().splitlines() if line.startswith("| ")]
    assert len(rows()) == len(lines) - 1
    assert len(rows()) > 20
