"""What fails is run again alone at the end, and the run is what comes of that."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
CONFTEST = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from support.machine.secondchance import pytest_addoption, pytest_configure
"""
OTHERS = """
import pathlib
import pytest

def first(name):
    mark = pathlib.Path(__file__).with_name(name)
    is_first = not mark.exists()
    mark.touch()
    return is_first

@pytest.mark.parametrize("n", range(3))
def test_good(n):
    pass

@pytest.mark.skip(reason="to be counted")
def test_skipped():
    pass
"""
FLAKY = """
@pytest.mark.parametrize("text", ["a b::c[0]"])
def test_flaky(text):
    assert not first("flaky")
"""
FLAKY_ID = "inner/test_it.py::test_flaky[a b::c[0]]"
BAD = """
def test_bad():
    assert False
"""
SETUP = """
@pytest.fixture
def room():
    assert not first("room")

def test_in_a_room(room):
    pass
"""
TEARDOWN = """
@pytest.fixture
def room():
    yield
    assert not first("room")

def test_in_a_room(room):
    pass
"""
CRASH = """
def test_crash():
    if first("crash"):
        import os
        os._exit(7)
"""
INTERRUPT = """
def test_interrupted():
    raise KeyboardInterrupt
"""
SKIPPED_THEN = """
def test_skipped_then():
    if first("skipped"):
        assert False
    pytest.skip("not passed")
"""
ELEVEN = """
@pytest.mark.parametrize("n", range(11))
def test_flaky(n):
    assert not first(f"flaky{n}")
"""
LEAN = (*("-p", "no:hypothesispytest"), *("-p", "no:asyncio"))  # slow to start, and not needed
IN_ORDER = ("-n", "0", "-p", "no:randomly")


def run(project: Path, source: str, *options: str) -> tuple[int, list[str]]:
    """Run tests as a program; return its exit status and its output."""
    inner = project / "inner"
    inner.mkdir()
    (inner / "conftest.py").write_text(CONFTEST)
    (inner / "test_it.py").write_text(OTHERS + source)
    (project / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib -rfEs\n")
    # Not this process's own: it may be a worker, or a run with options of its own.
    env = {key: text for key, text in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *LEAN, *options, "inner"],
        cwd=project,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("options", [("-n", "2"), ("-p", "no:xdist"), IN_ORDER])
def test_what_passes_the_second_time_is_flaky_and_the_run_green(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    status, lines = run(tmp_path, FLAKY, "--second-chance", *options)
    assert status == 0, lines
    assert lines[-2:] == [f"flaky: {FLAKY_ID}", "4 passed, 0 failed, 1 skipped"]
    assert any(re.search(r"\b1 failed, 3 passed, 1 skipped in", line) for line in lines)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_fails_twice_is_red(tmp_path: Path, workers: str) -> None:
    status, lines = run(tmp_path, FLAKY + BAD, "--second-chance", "-n", workers)
    assert status == 1, lines
    assert lines[-2:] == [f"flaky: {FLAKY_ID}", "4 passed, 1 failed, 1 skipped"]


@pytest.mark.parametrize("source", [SETUP, TEARDOWN])
def test_what_fails_before_or_after_its_call_is_run_again_too(tmp_path: Path, source: str) -> None:
    status, lines = run(tmp_path, source, "--second-chance", "-n", "0")
    assert status == 0, lines
    assert lines[-2:] == [
        "flaky: inner/test_it.py::test_in_a_room",
        "4 passed, 0 failed, 1 skipped",
    ]


def test_a_test_of_which_the_worker_crashed_is_run_again(tmp_path: Path) -> None:
    status, lines = run(tmp_path, CRASH, "--second-chance", "-n", "2")
    assert status == 0, lines
    assert lines[-2:] == ["flaky: inner/test_it.py::test_crash", "4 passed, 0 failed, 1 skipped"]


def test_a_crash_of_the_second_run_is_red(tmp_path: Path) -> None:
    source = CRASH.replace('first("crash")', "True")
    status, lines = run(tmp_path, source, "--second-chance", "-n", "2")
    assert status == 1, lines
    assert lines[-1] == "3 passed, 1 failed, 1 skipped"


def test_what_is_skipped_the_second_time_has_not_passed(tmp_path: Path) -> None:
    status, lines = run(tmp_path, SKIPPED_THEN, "--second-chance", "-n", "0")
    assert status == 1, lines
    assert lines[-1] == "3 passed, 1 failed, 1 skipped"


def test_more_than_ten_failures_are_red_at_once(tmp_path: Path) -> None:
    status, lines = run(tmp_path, ELEVEN, "--second-chance", "-n", "0")
    assert status == 1, lines
    assert lines[-1] == "3 passed, 11 failed, 1 skipped"
    assert not has_run_again(lines)


@pytest.mark.parametrize(
    "options", [(), ("--second-chance", "-x"), ("--second-chance", "-x", "-n2")]
)
def test_only_a_whole_run_that_asks_for_it_has_a_second_chance(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    status, lines = run(tmp_path, FLAKY, "-p", "no:randomly", *options)
    assert status != 0, lines
    assert not has_run_again(lines)


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("goes_on", [(), ("--continue-on-collection-errors",)])
def test_a_module_that_cannot_be_collected_is_red(
    tmp_path: Path, workers: str, goes_on: tuple[str, ...]
) -> None:
    status, lines = run(tmp_path, "assert False", "--second-chance", "-n", workers, *goes_on)
    assert status != 0, lines
    assert not has_run_again(lines)
    assert " 0 failed" not in lines[-1]


def test_an_interrupted_run_has_no_second_chance(tmp_path: Path) -> None:
    source = BAD + INTERRUPT
    status, lines = run(tmp_path, source, "--second-chance", *IN_ORDER)
    assert status == 2, lines
    assert not has_run_again(lines)


def test_a_run_without_failures_closes_with_the_same_line(tmp_path: Path) -> None:
    status, lines = run(tmp_path, "", "--second-chance", "-n", "2")
    assert status == 0, lines
    assert lines[-1] == "3 passed, 0 failed, 1 skipped"
    assert not has_run_again(lines)


def has_run_again(lines: list[str]) -> bool:
    return any("second chance of" in line for line in lines)
