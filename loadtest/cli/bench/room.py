"""`muster bench room`: who gives way for a gang that waits, beside the least that would do."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from muster.cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(kinds: Subparsers) -> None:
    """Add `bench room`."""
    command = kinds.add_parser(
        "room", help="victims of preemption and reclaim beside the optimum and other rules"
    )
    command.add_argument("--cases", type=int, default=400, help="clusters of each seed")
    command.add_argument("--seeds", type=int, default=1)
    command.add_argument(
        "--large",
        action="store_true",
        help="also a gang of 256 on 8,192 full nodes, and one of 8,192 on 130,000",
    )
    command.add_argument("--misses", action="store_true", help="tell what was not optimal")
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest.benches.room import bench  # noqa: PLC0415  lazy, as the other benches
    from loadtest.benches.room.oracle import SolverMissingError  # noqa: PLC0415  lazy

    try:
        settings = bench.RoomSettings(arguments.cases, arguments.seeds, arguments.large)
        figures, misses = bench.run(settings)
    except (ValueError, SolverMissingError) as error:
        raise Failure(str(error)) from error
    if arguments.misses:
        sys.stderr.writelines(f"{miss}\n" for miss in misses)
    show("room", figures, as_json=arguments.json)
    return 0
