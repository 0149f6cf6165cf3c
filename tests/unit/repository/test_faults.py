"""docs/faults.md says which test has which fault; here, that there is such a test."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
TESTS = ROOT / "tests" / "integration"
ROW = re.compile(r"^\| .* \| (test_\w+\.py) \| `(test_\w+)` \|$", re.MULTILINE)
WRITTEN_FOR_IT = ("test_kill_points.py", "test_storms.py", "test_faults.py")


def rows() -> set[tuple[str, str]]:
    return set(ROW.findall((ROOT / "docs" / "faults.md").read_text(encoding="utf-8")))


def in_file(file: str) -> set[str]:
    (path,) = TESTS.rglob(file)
    return set(re.findall(r"^async def (test_\w+)", path.read_text(), re.MULTILINE))


def test_every_fault_is_tested_where_the_table_says() -> None:
    assert len(rows()) > 25
    assert [row for row in rows() if row[1] not in in_file(row[0])] == []


def test_every_test_of_a_fault_is_in_the_table() -> None:
    there = {(file, name) for file in WRITTEN_FOR_IT for name in in_file(file)}
    assert there - rows() == set()
