"""`muster demo`: gangs arrive on an embedded fleet and are placed, with every part real HTTP."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from loadtest.cli.assets import real_minor
from muster.cli.output import add_json_flag

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser(
        "demo", help="place gangs on an embedded fleet, no cluster needed"
    )
    command.add_argument("--hosts", type=int, help="cut the fleet to about this many hosts")
    command.add_argument("--jobs", type=int, help="how many jobs arrive")
    command.add_argument("--seed", type=int, default=0, help="the same seed gives the same run")
    command.add_argument("--topology", type=Path, metavar="FILE", help="a real fleet's topology")
    command.add_argument("--trace", type=Path, metavar="FILE", help="a real cluster's job trace")
    command.add_argument(
        "--control-plane",
        choices=("simulated", "real"),
        default="simulated",
        help="real: etcd, kube-apiserver and kube-scheduler from `make assets`",
    )
    command.add_argument(
        "--kubernetes", metavar="MINOR", help="with --control-plane real: 1.35 (default) or 1.36"
    )
    command.add_argument("--svg", type=Path, metavar="FILE", help="also save the picture as SVG")
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest import demo  # noqa: PLC0415  lazy: --help starts without it

    return demo.run(
        hosts=arguments.hosts,
        jobs=arguments.jobs,
        seed=arguments.seed,
        topology=arguments.topology,
        trace=arguments.trace,
        real=real_minor(arguments),
        as_json=arguments.json,
        svg=arguments.svg,
    )
