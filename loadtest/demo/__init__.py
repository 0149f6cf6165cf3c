"""``muster demo``: gangs arrive on a fleet and are placed, every part talking real HTTP.

plan.py says what is submitted, run.py brings everything up and drives it, tracker.py
follows it through a watch of its own, picture.py and report.py show it.

``outcome``   what came out: the figures, and the picture of the fullest moment
``picture``   the topology map: each host a cell, each leaf a group of cells, each block a paragraph
``plan``      what the demonstration submits: a fleet, jobs on a compressed clock, and their wishes
``report``    what is printed at the end: the map, the gangs, one that waited, the totals
``run``       bring a control plane and Muster up, let the jobs arrive, run and end, and take stock
``show``      progress while it runs
``svgframe``  the frame of a report saved as a picture: one file that needs nothing from outside
``terminal``  a recorded terminal as a picture: the first block of a page that begins with a command
``tracker``   what is known of the run, from a watch of its own: gangs, hosts, rates
"""

import asyncio
import io
import json
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Final

from rich.console import Console

from loadtest.demo import report
from loadtest.demo.outcome import Outcome
from loadtest.demo.plan import make
from loadtest.demo.run import Demo
from loadtest.demo.show import LiveShow, Show, SilentShow
from loadtest.demo.svgframe import SVG_FRAME
from loadtest.testbed.controlplane.assets import AssetError, Minor
from loadtest.testbed.controlplane.programs import ProgramFailed
from loadtest.traces.fleet import FleetError
from loadtest.traces.trace import TraceError

__all__ = ["run"]

_WIDTH: Final = 114  # columns of a report that does not go to a terminal


def run(
    *,
    hosts: int | None = None,
    jobs: int | None = None,
    seed: int = 0,
    topology: Path | None = None,
    trace: Path | None = None,
    real: Minor | None = None,
    as_json: bool = False,
    svg: Path | None = None,
) -> int:
    """Run the demonstration; returns the exit code.

    `real`: the Kubernetes minor of a real control plane; None is the simulated one.
    0: something was placed, no gang is partial, nothing was given away twice. 1: one of
    these does not hold. 2: it could not be run (a wrong file, a part that did not start).
    """
    console = _console()
    try:
        story = make(hosts=hosts, jobs=jobs, seed=seed, topology=topology, trace=trace)
        show: Show = SilentShow() if as_json else LiveShow(console, story)
        outcome = asyncio.run(_until_terminated(Demo(story, real=real, show=show).run()))
    except asyncio.CancelledError:
        return 128 + signal.SIGTERM
    except (FleetError, TraceError, AssetError, ProgramFailed) as error:
        print(f"muster demo: {error}", file=sys.stderr)
        return 2
    if as_json:
        print(json.dumps(outcome.figures()))
    else:
        report.show(console, outcome)
    if svg is not None:
        _save_svg(svg, outcome)
    return 0 if outcome.good else 1


def _console() -> Console:
    """Return standard output; what is not a terminal has no width, so the map gets its own."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=_WIDTH)


def _save_svg(path: Path, outcome: Outcome) -> None:
    """Print the report once more, in colour, into a picture."""
    canvas = Console(
        record=True,
        highlight=False,
        width=_WIDTH,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        no_color=False,
    )
    report.show(canvas, outcome)
    canvas.save_svg(str(path), title="muster demo", code_format=SVG_FRAME, unique_id="muster")


async def _until_terminated(work: Coroutine[None, None, Outcome]) -> Outcome:
    """Run; SIGTERM cancels it, so that every child is stopped on the way out."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task
