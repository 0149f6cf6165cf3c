"""`muster bench sustained`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from muster.cli.output import ExitCode, Failure, add_json_flag, show

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(kinds: Subparsers) -> None:
    """Add the bench."""
    command = kinds.add_parser(
        "sustained", help="pods decided per second for minutes, at any size of the cluster"
    )
    command.add_argument("--nodes", type=int, default=130_000)
    command.add_argument("--pods", type=int, default=940_000, help="that stand on the nodes")
    command.add_argument("--rate", type=float, default=1000, help="pods created per second")
    command.add_argument("--seconds", type=float, default=600, help="measured, after the warm-up")
    command.add_argument("--gang", type=int, default=256, help="pods of a gang")
    command.add_argument("--runs", type=float, default=60, help="seconds that a gang runs")
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest.benches import sustained  # noqa: PLC0415  lazy

    try:
        settings = sustained.Settings(
            arguments.nodes,
            arguments.pods,
            arguments.rate,
            arguments.seconds,
            arguments.gang,
            arguments.runs,
        )
    except ValueError as error:
        raise Failure(str(error), code=ExitCode.USAGE) from error
    show("sustained", sustained.run(settings), as_json=arguments.json)
    return 0
