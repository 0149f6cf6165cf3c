"""``muster loadtest``: four phases of mixed-priority load, and a fifth of node failures.

fleets.py says on what, spec.py and phases.yaml (or a trace, replaying.py) what comes;
schedule.py decides it, pools.py for which hosts, book.py keeps who is on the cluster; site.py,
jobs.py and driver.py carry it out, watching.py looks on,
lacking.py asks why somebody waits; columns.py and figures.py count,
verdict.py judges; outcome.py is the report, summary.py and page.py show it.
withdrawal.py shows the same load with and without Muster's evictions.
curve.py measures Muster beside a bare kube-scheduler, curvepage.py shows that; whole.py is both.
chaos.py and chaosargs.py say what goes wrong, armed.py has the means, faults.py makes it happen,
aftermath.py tells what followed.

``driver/``  makes the load: nodes first, then jobs, phase by phase
``faults/``  faults that a load test makes, and what they leave behind
``load/``    what a load test asks for: pools, jobs, their schedule, and faults by name
``report/``  what a load test prints and writes: figures, verdict, charts and pages
``run/``     one load test from its settings to its verdict
``site/``    the cluster under load
"""

import asyncio
import functools
import json
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Final

import aiohttp
from rich.console import Console

from loadtest.fourphase.load.spec import SpecError
from loadtest.fourphase.report import page, summary
from loadtest.fourphase.report.curve import Asked, first
from loadtest.fourphase.report.outcome import Settings
from loadtest.fourphase.report.summary import Report
from loadtest.fourphase.run import session
from loadtest.fourphase.run.show import on_stderr
from loadtest.fourphase.site import logs
from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.controlplane.assets import AssetError
from loadtest.testbed.controlplane.programs import ProgramFailed
from loadtest.traces.fleet import FleetError
from loadtest.traces.gangtrace.stream import StreamError
from loadtest.traces.openb import OpenbError
from loadtest.traces.publisheddata import DataMissingError
from loadtest.traces.trace import TraceError

__all__ = ["Asked", "Settings", "run"]

JSON_FILE: Final = "report.json"
MARKDOWN_FILE: Final = "report.md"
PAGE_FILE: Final = "report.html"
# Failures with a message that is enough for the user: of files, of parts, of requests.
_EXPECTED: Final = (
    SpecError, DataMissingError, FleetError, OpenbError, TraceError, StreamError, AssetError,
    ProgramFailed, ApiFailed, aiohttp.ClientError, OSError,
)  # fmt: skip


def run(settings: Settings, *, command: str, out: Path, as_json: bool = False) -> int:
    """Run the load and write the report into ``out``; returns the exit code.

    0: the verdict is good. 1: a node was over its allocatable, a gang partial or not placed, a
    pod bound twice. 2: it could not be run (a wrong file, a part that did not start), or not at
    every size. 128 and the signal's number: SIGINT or SIGTERM ended it, with nothing wrong until
    then; the report is of what was done.
    """
    console = Console(highlight=False)
    signals: list[signal.Signals] = []
    try:
        work = session.prepared(settings)
        out.mkdir(parents=True, exist_ok=True)
        logs.forget(out)
        keep = functools.partial(write, out=out)
        doing = session.perform(work, console, command=command, quiet=as_json, keep=keep, out=out)
        report = asyncio.run(_until_signalled(doing, signals))
    except asyncio.CancelledError:
        on_stderr("there is nothing to report yet")
        return _by(signals)
    except (*_EXPECTED, ExceptionGroup) as error:
        failure = first(error)
        if not isinstance(failure, _EXPECTED):
            raise
        print(f"muster loadtest: {failure}", file=sys.stderr)
        return 2
    if as_json:
        print(json.dumps(report))
    else:
        print(summary.markdown(report))
        print(f"report: {out / PAGE_FILE}")
    for line in (*session.failures(report), *logs.note(out)):
        print(f"muster loadtest: {line}", file=sys.stderr)
    return session.exit_code(report) or _by(signals)


def write(report: Report, out: Path) -> None:
    """Write the three forms of the report."""
    text = json.dumps(report, indent=1)
    (out / JSON_FILE).write_text(text + "\n", encoding="utf-8")
    (out / MARKDOWN_FILE).write_text(summary.markdown(report), encoding="utf-8")
    (out / PAGE_FILE).write_text(page.html(report), encoding="utf-8")


def _by(signals: list[signal.Signals]) -> int:
    """Return the exit code of what a signal ended, as a shell has it; 0 if none did."""
    return 128 + signals[0] if signals else 0


async def _until_signalled(
    work: Coroutine[None, None, Report], signals: list[signal.Signals]
) -> Report:
    """Run; a signal cancels it, so that it tells what it has and every child is stopped."""
    task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()

    def end(number: signal.Signals) -> None:
        if not signals:
            on_stderr(f"{number.name}: ending with what there is; once more ends without a report")
        signals.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end, number)
    return await task
