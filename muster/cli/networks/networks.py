"""`muster networks`: which gang has which VNI, where its devices stand, and what is free."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from muster.cli.cluster import add_cluster_flags, run_against
from muster.cli.output import add_json_flag, say

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser("networks", help="isolated networks of jobs: pools, VNIs, nodes")
    command.add_argument(
        "which", nargs="?", metavar="GANG|VNI", help="show the nodes of one network (default: all)"
    )
    add_cluster_flags(command)
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from muster.cli.networks import networkviews  # noqa: PLC0415  lazy
    from muster.cli.ops.networks import named, read  # noqa: PLC0415  lazy

    found = run_against(arguments, read)
    if arguments.which is None:
        say(networkviews.as_json(found) if arguments.json else networkviews.table(found, _now()))
        return 0
    mine = named(found, arguments.which)
    say(networkviews.as_json(mine) if arguments.json else networkviews.detail(mine, _now()))
    return 0


def _now() -> float:
    return time.time()
