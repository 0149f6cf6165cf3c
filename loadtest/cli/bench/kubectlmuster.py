"""`muster bench cli`: how long the command line takes, from its start to its end."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from muster.cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(kinds: Subparsers) -> None:
    """Add `bench cli`."""
    command = kinds.add_parser("cli", help="`kubectl muster gangs -A`, from its start to its end")
    command.add_argument("--gangs", type=int, default=10_000)
    command.add_argument("--rounds", type=int, default=5)
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest.benches import kubectlmuster  # noqa: PLC0415  lazy, as the other benches
    from loadtest.testbed.controlplane.programs import ProgramFailed  # noqa: PLC0415  lazy

    try:
        settings = kubectlmuster.Settings(arguments.gangs, arguments.rounds)
        result = kubectlmuster.run(settings)
    except (ValueError, ProgramFailed) as error:
        raise Failure(str(error)) from error
    show("cli", result, as_json=arguments.json)
    return 0
