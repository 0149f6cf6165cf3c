"""`muster vni list`: which gang has which VNI, and where its devices stand."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cli.cluster import add_cluster_flags, run_against
from cli.output import add_json_flag

if TYPE_CHECKING:
    from cli.output import Subparsers


def register(commands: Subparsers) -> None:
    """Add the command."""
    group = commands.add_parser("vni", help="isolated networks of jobs")
    verbs = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    command = verbs.add_parser("list", help="pools, networks, and what their nodes say")
    add_cluster_flags(command)
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from cli.ops.vnis import read, render, to_json  # noqa: PLC0415  lazy

    found = run_against(arguments, read)
    print(to_json(found) if arguments.json else render(found))
    return 0
