"""`muster loadtest`: four phases of mixed-priority load after a published experiment."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from loadtest.cli import besidebare, loadfleet
from loadtest.cli.assets import real_minor
from muster.cli.output import Failure, add_json_flag

if TYPE_CHECKING:
    from loadtest.fourphase.report.outcome import Settings
    from muster.cli.output import Subparsers


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser(
        "loadtest", help="four phases of mixed-priority load, with a report and a verdict"
    )
    command.add_argument("--nodes", type=int, required=True, help="size of the cluster")
    command.add_argument(
        "--pods",
        type=int,
        metavar="M",
        help="pods of the full cluster: the rest stand on its nodes",
    )
    command.add_argument(
        "--control-plane",
        choices=("simulated", "real"),
        default="simulated",
        help="real: etcd, kube-apiserver and kube-scheduler from `make assets`",
    )
    command.add_argument(
        "--kubernetes", metavar="MINOR", help="with --control-plane real: 1.35 (default) or 1.36"
    )
    command.add_argument(
        "--kubelets",
        choices=("kwok", "writer"),
        help="who runs the pods: kwok (default with --control-plane real up to 5,000 nodes), or "
        "a writer that reports their phases and nothing else",
    )
    command.add_argument(
        "--phases", type=Path, metavar="FILE", help="other phases than the shipped ones (YAML)"
    )
    loadfleet.register(command)
    command.add_argument(
        "--chaos",
        action="append",
        default=[],
        metavar="KIND[@PHASE[:SHARE]],…",
        help="faults, as kill-extender@training:0.5: when half of that phase is bound",
    )
    command.add_argument(
        "--making-room",
        action="store_true",
        help="Muster has lower priorities give way; otherwise the load generator withdraws them",
    )
    command.add_argument(
        "--beside-withdrawal",
        action="store_true",
        help="with --making-room: the same load once more, withdrawn by the load generator",
    )
    command.add_argument(
        "--gated",
        action="store_true",
        help="every pod waits at its gate for its place; otherwise places are reserved beforehand",
    )
    command.add_argument("--seed", type=int, default=0, help="the same seed gives the same load")
    command.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        default=Path("muster-loadtest"),
        help="where report.json, report.md and report.html go (default: %(default)s)",
    )
    besidebare.add_flags(command)
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest import fourphase  # noqa: PLC0415  lazy: --help starts without it

    try:
        settings = _settings(arguments)
    except Failure as wrong:  # not 1, which is a bad verdict
        print(f"muster loadtest: {wrong}", file=sys.stderr)
        return 2
    return fourphase.run(
        settings, command=_command(arguments), out=arguments.out, as_json=arguments.json
    )


def _settings(arguments: argparse.Namespace) -> Settings:
    from loadtest.fourphase.report.outcome import Settings  # noqa: PLC0415  lazy

    return Settings(
        nodes=arguments.nodes,
        pods=arguments.pods,
        real=real_minor(arguments),
        phases=arguments.phases,
        seed=arguments.seed,
        beside=besidebare.asked(arguments),
        fleet=arguments.fleet,
        replay=loadfleet.replay(arguments),
        data=arguments.data,
        chaos=tuple(arguments.chaos),
        kubelets=arguments.kubelets,
        making_room=arguments.making_room,
        gated=arguments.gated,
        beside_withdrawal=arguments.beside_withdrawal,
    )


def _command(arguments: argparse.Namespace) -> str:
    """Return the command that repeats this run."""
    words = ["muster", "loadtest", "--nodes", str(arguments.nodes)]
    if arguments.pods is not None:
        words += ["--pods", str(arguments.pods)]
    words += ["--control-plane", arguments.control_plane]
    if arguments.control_plane == "real":
        words += ["--kubernetes", str(real_minor(arguments))]
    if arguments.kubelets is not None:
        words += ["--kubelets", arguments.kubelets]
    if arguments.phases is not None:
        words += ["--phases", str(arguments.phases)]
    if arguments.chaos:
        words += ["--chaos", ",".join(arguments.chaos)]
    if arguments.making_room:
        words.append("--making-room")
    if arguments.beside_withdrawal:
        words.append("--beside-withdrawal")
    if arguments.gated:
        words.append("--gated")
    words += loadfleet.words(arguments)
    return shlex.join([*words, "--seed", str(arguments.seed), *besidebare.words(arguments)])
