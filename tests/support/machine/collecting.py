"""Where a worker begins to collect: each elsewhere, so that it finds the rest compiled.

pytest rewrites the assertions of each test file and stores what it compiled: 10 s of CPU for all
files. Workers that go through them in one order would each compile all of them::

    gw0   a b c d        gw2   c d a b
    gw1   b c d a        gw3   d a b c

The controller needs one order, so the items are sorted at the end.
"""

from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[2]


def begin_elsewhere(config: pytest.Config) -> None:
    """Turn round what a worker collects, if that is everything."""
    worker: dict[str, object] | None = getattr(config, "workerinput", None)
    if worker is None or [Path(each).resolve() for each in config.args] != [TESTS]:
        return
    number, count = int(str(worker["workerid"]).removeprefix("gw")), int(str(worker["workercount"]))
    rooms = [str(room) for room in _rooms()]
    begin = len(rooms) * number // count
    config.args[:] = rooms[begin:] + rooms[:begin]
    config.stash[_TURNED] = True


def in_one_order(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort by file what `begin_elsewhere` turned round; the tests of a file stay as they are."""
    if config.stash.get(_TURNED, False):
        items.sort(key=lambda item: item.path.parts)


_TURNED: Final = pytest.StashKey[bool]()


def _rooms() -> list[Path]:
    """Return the folders that hold all tests: two deep, one where there is none below."""
    tops = sorted({file.relative_to(TESTS).parts[0] for file in TESTS.rglob("test_*.py")})
    return [room for top in tops for room in _below(TESTS / top)]


def _below(top: Path) -> list[Path]:
    if any(top.glob("test_*.py")):
        return [top]
    return [each for each in sorted(top.iterdir()) if any(each.rglob("test_*.py"))]
