"""`muster bench waves`: three waves of gangs, each of which must have the one before give way."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from loadtest.cli.assets import real_minor
from muster.cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(kinds: Subparsers) -> None:
    """Add `bench waves`."""
    command = kinds.add_parser(
        "waves", help="three waves of rising priority: each has the one before give way"
    )
    command.add_argument("--nodes", type=int, default=100, help="each wave fills all of them")
    command.add_argument("--size", type=int, default=10, help="pods of each gang, a node each")
    command.add_argument(
        "--interval", type=float, default=5.0, metavar="S", help="seconds between two waves"
    )
    command.add_argument(
        "--control-plane",
        choices=("simulated", "real"),
        default="simulated",
        help="real: etcd, kube-apiserver and kube-scheduler from `make assets`",
    )
    command.add_argument("--kubernetes", metavar="MINOR", help="with --control-plane real")
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest.benches.room import waves  # noqa: PLC0415  lazy, as the other benches
    from loadtest.testbed.controlplane.programs import ProgramFailed  # noqa: PLC0415  lazy

    try:
        figures = waves.run(
            waves.WaveSettings(
                arguments.nodes, arguments.size, arguments.interval, real_minor(arguments)
            )
        )
    except (ValueError, ProgramFailed) as error:
        raise Failure(str(error)) from error
    show("waves", figures, as_json=arguments.json)
    return 0 if figures["good"] else 1
