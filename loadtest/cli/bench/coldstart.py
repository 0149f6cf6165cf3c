"""`muster bench cold-start`: CPU and memory of the extender until it has read a cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from muster.cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(kinds: Subparsers) -> None:
    """Add `bench cold-start`."""
    command = kinds.add_parser(
        "cold-start", help="CPU and memory of the extender until it has read a cluster"
    )
    command.add_argument("--nodes", type=int, default=130_000)
    command.add_argument("--pods", type=int, default=1_000_000)
    command.add_argument("--tls", action="store_true", help="lists come encrypted")
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest.benches.coldstart import bench  # noqa: PLC0415  lazy, as the other benches
    from loadtest.testbed.controlplane.programs import ProgramFailed  # noqa: PLC0415  lazy

    try:
        result = bench.run(arguments.nodes, arguments.pods, tls=arguments.tls)
    except (ValueError, ProgramFailed) as error:
        raise Failure(str(error)) from error
    show("cold start", result, as_json=arguments.json)
    return 0
