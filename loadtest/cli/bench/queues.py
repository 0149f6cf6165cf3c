"""`muster bench queues`: streams of jobs on the planner with queues, beside others' rules."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from muster.cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_DATA: Final = Path(__file__).resolve().parents[3].parent / "shared" / "data"
_COLUMNS: Final = {
    "mean_wait": "wait, h",
    "bounded_slowdown": "slowdown",
    "big_gang_p95": "big p95, h",
    "utilisation": "used",
    "jain": "Jain",
}
_HOURS: Final = ("mean_wait", "big_gang_p95")


def register(kinds: Subparsers) -> None:
    """Add `bench queues`."""
    command = kinds.add_parser(
        "queues", help="waits, utilisation and fairness of queues beside FIFO and EASY backfilling"
    )
    command.add_argument(
        "--trace",
        choices=("philly", "model"),
        default="philly",
        help="the Philly trace with a queue for each virtual cluster, or Lublin's and Feitelson's "
        "model of a parallel computer",
    )
    command.add_argument(
        "--load", type=float, default=1.0, help="GPUs asked for, as a share of the cluster's"
    )
    command.add_argument("--seeds", type=int, default=3)
    command.add_argument("--jobs", type=int, default=5_000, help="jobs of each seed")
    command.add_argument(
        "--take-back",
        choices=("nothing", "entitled", "fair-share"),
        default="nothing",
        help="for what queues of Muster's side have others' jobs give way, which go on later from "
        "an hourly checkpoint",
    )
    command.add_argument(
        "--data",
        type=Path,
        default=_DATA,
        help="folder with philly/philly.csv (default: shared/data beside the checkout)",
    )
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    """Run `python -m loadtest.queuereplay`; it holds the planner, which nothing here may import."""
    from loadtest.traces.publisheddata import DataMissingError, located  # noqa: PLC0415  lazy

    words = [f"--{name}={getattr(arguments, name)}" for name in ("trace", "load", "seeds", "jobs")]
    words.append(f"--take-back={arguments.take_back}")
    try:
        if arguments.trace == "philly":
            file = Path("philly/philly.csv")
            words.append(f"--path={located(arguments.data, file, '--trace philly')}")
    except DataMissingError as error:
        raise Failure(str(error)) from error
    done = subprocess.run(
        [sys.executable, "-m", "loadtest.queuereplay", *words],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        check=False,
    )
    if not done.stdout:
        raise Failure(f"the replay ended with exit code {done.returncode}; see above")
    _show(json.loads(done.stdout), as_json=arguments.json)
    return done.returncode


def _show(found: dict[str, Any], *, as_json: bool) -> None:
    """Print everything as JSON, or a table of the rules and one of the ratios."""
    if not as_json:
        _show_rules(found["rules"])
        found = {name: value for name, value in found.items() if name not in ("rules", "runs")}
    show("queues", found, as_json=as_json)


def _show_rules(rules: dict[str, dict[str, float]]) -> None:
    from rich.console import Console  # noqa: PLC0415  --json and --help start without it
    from rich.table import Table  # noqa: PLC0415  lazy

    table = Table(title="means over seeds and estimates")
    for header in ("rule", *_COLUMNS.values()):
        table.add_column(header, no_wrap=True)
    for name, row in rules.items():
        table.add_row(name, *(_text(column, row[column]) for column in _COLUMNS))
    Console().print(table)


def _text(column: str, value: float) -> str:
    return f"{value / 3600.0:,.2f}" if column in _HOURS else f"{value:,.3f}"
