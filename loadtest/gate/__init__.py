"""``muster bench gate``: is Muster still as fast as it was, in figures that any machine can give.

::

    bounds.yaml ──► bounds.py ──► running.py ──► judge.py ──► telling.py
                                   │   ▲
                                   ▼   │ what is divided by what
                          python -m loadtest.gate PROBE   (probes.py: one process each)

Every figure is a ratio of two measurements of one run: Muster over what does the same without it,
or over the least that the work can cost. A slow machine slows both.

``__main__``  one probe; prints ``{RATIO: [above, below]}``
``bounds``    the bounds as data, read strictly
``judge``     whether a ratio is within its bound
``probes``    what is measured: the benches at a small, fixed size, a process of its own for each
``running``   the order of the probes, and the second look at ratios over their bounds
``text``      the lines that the gate prints: measurements, verdict, report, ranges
"""

import json
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from loadtest.gate import text
from loadtest.gate.bounds import Bound, BoundsError, load
from loadtest.gate.probes import PROBES, ProbeFailed, in_own_process
from loadtest.gate.running import measured_often, settled

__all__ = ["run", "survey"]


def run(*, path: Path | None, only: Sequence[str], as_json: bool) -> int:
    """Measure and compare; returns the exit code.

    0: every ratio is within its bound. 1: one was over it three times. 2: it could not be
    measured (a wrong file, a program that did not start).
    """
    began = time.monotonic()
    try:
        bounds = chosen(load(path, _known()), only)
        say = text.Lines(bounds, quiet=as_json)
        standings = settled(bounds, in_own_process, say.standing)
    except (BoundsError, ProbeFailed) as error:
        return _could_not(error)
    seconds = time.monotonic() - began
    if as_json:
        print(json.dumps(text.report(standings, seconds)))
    else:
        print(text.verdict(standings, seconds))
    return 0 if all(each.held for each in standings) else 1


def survey(*, path: Path | None, only: Sequence[str], runs: int, as_json: bool) -> int:
    """Measure ``runs`` times and tell the range of each ratio: what a bound is set by."""
    try:
        bounds = chosen(load(path, _known()), only)
        found = measured_often(bounds, in_own_process, runs)
    except (BoundsError, ProbeFailed) as error:
        return _could_not(error)
    ranges = {name: text.spread(ratios) for name, ratios in found.items()}
    print(json.dumps(ranges) if as_json else text.as_yaml(ranges))
    return 0


def chosen(bounds: Sequence[Bound], only: Collection[str]) -> list[Bound]:
    """Return those that are asked for by name, all where none is; raises ``BoundsError``."""
    names = [each.name for each in bounds]
    for name in only:
        if name not in names:
            raise BoundsError(f"--only {name}: no such ratio: there are {', '.join(names)}")
    return [each for each in bounds if not only or each.name in only]


def _known() -> list[str]:
    return [name for probe in PROBES.values() for name in probe.ratios]


def _could_not(error: Exception) -> int:
    print(f"muster bench gate: {error}", file=sys.stderr)
    return 2
