"""`muster bench gate`: ratios of Muster's costs beside recorded bounds; fails on a regression."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from muster.cli.output import Failure, add_json_flag

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(kinds: Subparsers) -> None:
    """Add `bench gate`."""
    command = kinds.add_parser(
        "gate", help="ratios of costs beside recorded bounds; fails when one is over its bound"
    )
    command.add_argument(
        "--only", action="append", default=[], metavar="RATIO", help="one ratio alone; repeatable"
    )
    command.add_argument(
        "--bounds", type=Path, metavar="FILE", help="other bounds than the shipped ones (YAML)"
    )
    command.add_argument(
        "--survey",
        type=int,
        metavar="N",
        help="measure N times and print what was seen, for setting bounds; judges nothing",
    )
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest import gate  # noqa: PLC0415  lazy, as the other benches

    asked = {"path": arguments.bounds, "only": arguments.only, "as_json": arguments.json}
    if arguments.survey is None:
        return gate.run(**asked)
    if arguments.survey < 1:
        raise Failure(f"--survey {arguments.survey}: must be at least 1")
    return gate.survey(**asked, runs=arguments.survey)
