"""A test that fails is run again alone at the end: pytest's option ``--second-chance``.

::

    all tests, on all workers ──► 1 to 10 failed? ──no──► the run is what it is
                                       │ yes
                                       ▼
         these alone, in one process, the workers have ended ──► all pass? ──yes──► green, and
                                                                     │ no           ``flaky: …``
                                                                     ▼
                                                                    red

A module that cannot be collected, an internal error, an interrupted run and one that stops at its
first failure (``--exitfirst``, ``--maxfail``) get no second chance. The last line of the output is
``N passed, M failed, S skipped``, of each test what it came to in the end.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

MOST: Final = 10  # failures: beyond that it is no accident
OUTCOMES: Final = "MUSTER_SECOND_CHANCE_OUTCOMES"
"""Environment variable: where a second run writes what its tests came to. It has no third."""


@dataclass(slots=True)
class Outcomes:
    """Node ids of tests by what they came to, each in the order in which it was known."""

    #: As far as they ran; one of these that failed in its teardown is in both.
    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def add(self, report: pytest.TestReport) -> None:
        """Take a report of a test's set-up, call or teardown, or of its worker's crash."""
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)
        elif report.skipped:
            self.skipped.append(report.nodeid)
        elif report.passed and report.when == "call":
            self.passed.append(report.nodeid)

    def good(self) -> set[str]:
        """Return those that passed, teardown and all."""
        return {*self.passed} - {*self.failed}


class Recorder:
    """What the second run's process does: it writes what its tests came to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._outcomes = Outcomes()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._outcomes.add(report)

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(sorted(self._outcomes.good())))


class SecondChance:
    """Runs what failed again, and says how the whole run ends."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._outcomes = Outcomes()
        self._uncollected = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._outcomes.add(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._uncollected += report.failed

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Come last: every fixture is torn down, the workers have ended, pytest has summed up."""
        yield
        if session.exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return
        failed = self._outcomes.failed
        flaky = self._run_again(failed) if self._may_run_again() else []
        # Whatever else made the run red leaves it so.
        if failed and len(flaky) == len(failed):
            session.exitstatus = pytest.ExitCode.OK
        red = session.exitstatus != pytest.ExitCode.OK
        passed = len(self._outcomes.good()) + len(flaky)
        lost = len(failed) - len(flaky) + self._uncollected
        self._close(flaky, passed, max(lost, int(red)))

    def _may_run_again(self) -> bool:
        stops_early = bool(self._config.getoption("maxfail"))
        return 0 < len(self._outcomes.failed) <= MOST and not self._uncollected and not stops_early

    def _run_again(self, failed: Sequence[str]) -> list[str]:
        """Run tests alone and return those that pass."""
        reporter = _reporter(self._config)
        reporter.write_sep("=", f"second chance of {len(failed)}")
        with tempfile.TemporaryDirectory() as directory:
            outcomes = Path(directory) / "outcomes.json"
            status = _run(again(self._config, failed), outcomes, reporter)
            passed = set(json.loads(outcomes.read_text())) if outcomes.exists() else set()
        flaky = [nodeid for nodeid in failed if nodeid in passed]
        # Red for another reason than a test: then none of them is known to pass.
        return flaky if status == int(len(flaky) < len(failed)) else []

    def _close(self, flaky: Iterable[str], passed: int, failed: int) -> None:
        reporter = _reporter(self._config)
        for nodeid in flaky:
            reporter.write_line(f"flaky: {nodeid}")
        skipped = len({*self._outcomes.skipped})
        more = f", {skipped} skipped" if skipped else ""
        reporter.write_line(f"{passed} passed, {failed} failed{more}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option. A hook of pytest's, called by conftest.py's."""
    parser.getgroup("second chance").addoption(
        "--second-chance",
        action="store_true",
        help=f"run at most {MOST} tests that failed again at the end, in one process; "
        "where all of them pass, the run is green and names them as flaky",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Watch a run, unless it is a worker's. A hook of pytest's, called by conftest.py's."""
    path = os.environ.pop(OUTCOMES, None)  # no concern of programs that tests start
    if hasattr(config, "workerinput"):
        return
    if path is not None:
        config.pluginmanager.register(Recorder(Path(path)))
    elif config.getoption("second_chance") and not config.getoption("collectonly"):
        config.pluginmanager.register(SecondChance(config))


def again(config: pytest.Config, nodeids: Iterable[str]) -> list[str]:
    """Return the command that runs tests again: as they ran, but for where and beside what."""
    given = list(config.invocation_params.args)
    for path in config.option.file_or_dir or ():
        if path in given:
            del given[len(given) - 1 - given[::-1].index(path)]  # values of options stand before
    more = [f"--rootdir={config.rootpath}"]
    if config.pluginmanager.hasplugin("xdist"):
        more.append("--numprocesses=0")
    if config.pluginmanager.hasplugin("randomly"):
        more.append(f"--randomly-seed={config.getoption('randomly_seed')}")
    if config.getoption("xmlpath", None):
        more.append("--junitxml=")  # stays that of the first run
    tests = (f"{config.rootpath}{os.sep}{nodeid}" for nodeid in nodeids)
    return [sys.executable, "-m", "pytest", *map(str, given), *more, *tests]


def _run(command: Sequence[str], outcomes: Path, reporter: pytest.TerminalReporter) -> int:
    """Run a command, write its output line by line as it comes, and return its exit status."""
    with subprocess.Popen(
        command,
        env={**os.environ, OUTCOMES: str(outcomes)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        line = "\n"
        for line in process.stdout:
            reporter.write(line, flush=True)
        if not line.endswith("\n"):  # it ended in the middle of one
            reporter.write("\n")
    return process.returncode


def _reporter(config: pytest.Config) -> pytest.TerminalReporter:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    assert isinstance(reporter, pytest.TerminalReporter)
    return reporter
