"""Programs of ours that are forked instead of executed: the same to themselves and to a test."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.machine.launcher import Forked, Launcher
from support.machine.patience import PATIENCE_S

from loadtest.testbed.controlplane.programs import Launch, Started, executed

PROGRAM = """
import atexit, json, os, random, signal, sys, threading, time
print(json.dumps({
    "argv": sys.argv[1:], "folder": os.getcwd(), "path": sys.path, "name": __name__,
    "environment": dict(os.environ), "leads its session": os.getsid(0) == os.getpid(),
    "stdin": sys.stdin.read(), "blocked": list(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "on a child's end": signal.getsignal(signal.SIGCHLD), "parent": os.getppid(),
    "files": sorted(fd for fd in range(3, 50) if os.path.exists(f"/proc/self/fd/{fd}")),
    "random": random.random(), "hash": hash("a"), "pid": os.getpid(),
}), flush=True)
print("an error", file=sys.stderr)
if "stay" in sys.argv:
    time.sleep(600)
if "fail" in sys.argv:
    sys.exit(3)
if "give a reason" in sys.argv:
    sys.exit("a reason")
if "leave a thread" in sys.argv:
    threading.Timer(0.1, print, ["from a thread"]).start()
if "leave a handler" in sys.argv:
    atexit.register(print, "from a handler")
if "raise" in sys.argv:
    raise ValueError("a fault")
"""
EACH_ITS_OWN = ("random", "hash", "pid", "parent")
Start = Callable[..., Started]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have the program above as a package that can be imported."""
    folder = tmp_path / "lib" / "probed"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "__main__.py").write_text(f"def main():\n{_indented(PROGRAM)}\n" + GUARD)
    monkeypatch.setenv("PYTHONPATH", str(folder.parent))
    return folder


@pytest.fixture
def launch(package: Path) -> Iterator[Launcher]:
    launcher = Launcher([package.name], also=[])
    yield launcher
    launcher.close()


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start the program by a launch; its output goes to NAME.log."""

    def run(launch: Launch, name: str, *words: str) -> Started:
        with (tmp_path / f"{name}.log").open("ab") as log:
            return launch([sys.executable, "-m", "probed", *words], {**os.environ, "X": "ü"}, log)

    return run


GUARD = "if __name__ == '__main__':\n    main()\n"


def _indented(code: str) -> str:
    return "".join(f"    {line}\n" for line in code.splitlines() if line)


def printed(folder: Path, name: str) -> dict[str, object]:
    """Return what the program found, by the name of its log."""
    return json.loads((folder / f"{name}.log").read_text().splitlines()[0])


def test_a_forked_program_finds_all_as_an_executed_one_does(
    launch: Launcher, start: Start, tmp_path: Path
) -> None:
    for name, how in (("forked", launch), ("executed", executed)):
        assert start(how, name, "--config", "a b").wait() == 0
        assert (tmp_path / f"{name}.log").read_text().endswith("an error\n")
    forked, other = printed(tmp_path, "forked"), printed(tmp_path, "executed")
    assert forked["parent"] != other["parent"] == os.getpid()
    for each in EACH_ITS_OWN:
        del forked[each], other[each]
    assert forked == other
    assert forked["argv"] == ["--config", "a b"]


def test_two_that_start_one_after_the_other_differ_in_hashes_and_chance(
    launch: Launcher, start: Start, tmp_path: Path
) -> None:
    for name in "abc":
        start(launch, name).wait()
    first, second, third = (printed(tmp_path, name) for name in "abc")
    assert first["hash"] != second["hash"]
    assert first["parent"] == third["parent"] != second["parent"]
    assert first["random"] != third["random"]


@pytest.mark.parametrize(
    ("words", "environment"),
    [(["-m", "probed"], {"PYTHONHASHSEED": "7"}), (["-c", "pass"], {}), (["-m", "platform"], {})],
)
def test_what_only_an_exec_gives_is_executed(
    launch: Launcher, tmp_path: Path, words: list[str], environment: dict[str, str]
) -> None:
    with (tmp_path / "log").open("ab") as log:
        child = launch([sys.executable, *words], {**os.environ, **environment}, log)
    assert isinstance(child, subprocess.Popen)
    child.wait()


def test_a_program_that_ends_by_itself_is_seen_with_its_exit_code(
    launch: Launcher, start: Start
) -> None:
    for how in (launch, executed):
        child = start(how, "it", "fail")
        deadline = time.monotonic() + PATIENCE_S
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert child.poll() == child.wait() == 3


@pytest.mark.parametrize(
    ("word", "code", "last"),
    [
        ("end", 0, "an error"),
        ("fail", 3, "an error"),
        ("give a reason", 1, "a reason"),
        ("leave a thread", 0, "from a thread"),
        ("leave a handler", 0, "from a handler"),
        ("raise", 1, "ValueError: a fault"),
    ],
)
def test_a_forked_program_ends_as_an_executed_one_does(
    launch: Launcher, start: Start, tmp_path: Path, word: str, code: int, last: str
) -> None:
    for name, how in (("forked", launch), ("executed", executed)):
        assert start(how, name, word).wait() == code
        assert (tmp_path / f"{name}.log").read_text().splitlines()[-1] == last


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_forked_program_that_was_sent_a_signal_is_gone_when_waited_for(
    launch: Launcher, start: Start, number: int
) -> None:
    child = start(launch, "it", "stay")
    assert isinstance(child, Forked)
    assert child.poll() is None
    child.send_signal(number)
    assert child.wait() == -number
    assert child.poll() == -number
    assert not Path(f"/proc/{child.pid}").exists()
    child.send_signal(number)


def test_another_server_takes_the_place_of_one_that_ended(
    launch: Launcher, start: Start, tmp_path: Path
) -> None:
    start(launch, "a").wait()
    parent = printed(tmp_path, "a")["parent"]
    assert isinstance(parent, int)
    left = [start(launch, name, "stay") for name in "bc"]
    os.kill(parent, signal.SIGKILL)
    until_gone(parent)
    assert left[1].wait() == -signal.SIGKILL
    for name in "bc":
        start(launch, name).wait()
    assert printed(tmp_path, "c")["parent"] != parent


ENDED = """
import os, sys
from pathlib import Path
from support.machine.launcher import Launcher
with Path(sys.argv[1]).open("ab") as log:
    child = Launcher(["probed"], also=[])([sys.executable, "-m", "probed", "stay"], None, log)
print(child.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.usefixtures("package")
def test_a_forked_program_ends_with_the_one_that_asked_for_it(tmp_path: Path) -> None:
    path = os.pathsep.join([os.environ["PYTHONPATH"], *sys.path])
    asking = subprocess.run(
        [sys.executable, "-c", ENDED, str(tmp_path / "log")],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        check=False,
    )
    assert asking.returncode == -signal.SIGKILL
    until_gone(int(asking.stdout))


def until_gone(pid: int) -> None:
    """Return when the process is no longer there or waits to be collected."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([pidfd], [], [], PATIENCE_S)[0]
    finally:
        os.close(pidfd)
