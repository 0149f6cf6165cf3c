"""The options of `muster loadtest` that choose the fleet, and a trace instead of the phases."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from muster.cli.output import Failure

if TYPE_CHECKING:
    from loadtest.fourphase.load.replayreport import Replay

DATA: Final = Path(__file__).resolve().parents[2].parent / "shared" / "data"
_OF_A_TRACE: Final = ("jobs", "load", "speed")


def register(command: argparse.ArgumentParser) -> None:
    """Add the options."""
    command.add_argument(
        "--fleet",
        choices=("grid", "mixed", "lingjun", "openb"),
        default="grid",
        help="grid: equal hosts; mixed: several GPU models, zones, NVLink domains; lingjun: a "
        "real Clos; openb: the machines of a real cluster (default: %(default)s)",
    )
    command.add_argument(
        "--trace", choices=("philly", "openb"), help="replay a real trace instead of the phases"
    )
    command.add_argument(
        "--jobs", type=int, help="with --trace: consecutive jobs, drawn by seed; 0: all (500)"
    )
    command.add_argument(
        "--load",
        type=float,
        help="with --trace: GPUs asked for, as a share of the fleet's (0.7)",
    )
    command.add_argument(
        "--speed",
        type=float,
        help="with --trace: its seconds in one second (so that all arrive in two minutes)",
    )
    command.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=DATA,
        help="folder with lingjun_topo, openb and philly (default: beside the checkout)",
    )


def replay(arguments: argparse.Namespace) -> Replay | None:
    """Return what is to be replayed, ``None`` for the phases; raises ``Failure``."""
    from loadtest.fourphase.load.replayreport import Replay  # noqa: PLC0415  lazy: --help starts without it

    given = {name: getattr(arguments, name) for name in _OF_A_TRACE}
    given = {name: value for name, value in given.items() if value is not None}
    if arguments.trace is None:
        if given:
            raise Failure(f"--{next(iter(given))}: belongs to --trace philly or --trace openb")
        return None
    if arguments.phases is not None:
        raise Failure(f"--phases and --trace {arguments.trace}: give one of the two")
    return Replay(arguments.trace, **given)


def words(arguments: argparse.Namespace) -> list[str]:
    """Return the options that repeat this choice; defaults are left out."""
    found = [] if arguments.fleet == "grid" else ["--fleet", arguments.fleet]
    for name in ("trace", *_OF_A_TRACE):
        if (value := getattr(arguments, name)) is not None:
            found += [f"--{name}", str(value)]
    return found if arguments.data == DATA else [*found, "--data", str(arguments.data)]
