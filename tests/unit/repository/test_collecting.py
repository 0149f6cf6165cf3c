"""Workers begin to collect at different places, and end with the same tests in one order."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.machine import collecting
from support.machine.collecting import TESTS

COUNT = 4


def worker(number: int, *args: str) -> pytest.Config:
    """Return what is asked of the configuration of a worker."""
    input_ = {"workerid": f"gw{number}", "workercount": COUNT}
    return _config(SimpleNamespace(workerinput=input_), args)


def _config(config: SimpleNamespace, args: tuple[str, ...]) -> pytest.Config:
    config.args, config.stash = list(args or ["tests"]), pytest.Stash()
    return cast("pytest.Config", config)


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TESTS.parent)


def test_each_worker_begins_elsewhere_and_goes_the_same_way_round() -> None:
    first, *others = [worker(number) for number in range(COUNT)]
    for config in (first, *others):
        collecting.begin_elsewhere(config)
    assert len({config.args[0] for config in (first, *others)}) == COUNT
    for config in others:
        begin = first.args.index(config.args[0])
        assert config.args == first.args[begin:] + first.args[:begin]


def test_every_test_file_is_collected_once() -> None:
    config = worker(1)
    collecting.begin_elsewhere(config)
    found = [file for room in config.args for file in Path(room).rglob("test_*.py")]
    assert sorted(found) == sorted(TESTS.rglob("test_*.py"))


def test_all_workers_end_with_one_order() -> None:
    def collected(number: int) -> list[str]:
        config = worker(number)
        collecting.begin_elsewhere(config)
        items: list[Any] = [
            SimpleNamespace(path=file, name=f"{file.name}::{case}")
            for room in config.args
            for file in sorted(Path(room).rglob("test_*.py"))
            for case in "ba"
        ]
        collecting.in_one_order(config, items)
        return [item.name for item in items]

    assert collected(0) == collected(1) == collected(2) == collected(3)
    assert collected(0)[0].endswith("::b"), "the tests of a file stay as they are"


@pytest.mark.parametrize(
    "config",
    [
        _config(SimpleNamespace(), ()),
        worker(1, "tests/unit"),
        worker(1, "tests/unit/repository/test_collecting.py::test_it"),
    ],
    ids=["one process", "a folder", "a test"],
)
def test_what_is_not_everything_for_several_workers_stays(config: pytest.Config) -> None:
    args, items = list(config.args), [SimpleNamespace(path=Path(each)) for each in "ba"]
    collecting.begin_elsewhere(config)
    collecting.in_one_order(config, cast("Any", items))
    assert config.args == args
    assert [str(item.path) for item in items] == ["b", "a"]
