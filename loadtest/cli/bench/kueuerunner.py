"""`muster bench kueue-runner`: Kueue's own performance runner on Kueue and on Muster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from muster.cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(kinds: Subparsers) -> None:
    """Add `bench kueue-runner`."""
    command = kinds.add_parser(
        "kueue-runner", help="Kueue's own performance runner on Kueue, then on Muster"
    )
    command.add_argument("--config", default="baseline", help="one that the runner is shipped with")
    command.add_argument(
        "--scale", type=float, default=1.0, help="of the workloads in it, for a short run"
    )
    command.add_argument("--side", choices=("kueue", "muster"), help="measure one of the two alone")
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest.benches import kueuerunner  # noqa: PLC0415  lazy, as the other benches
    from loadtest.testbed.controlplane.assets import AssetError  # noqa: PLC0415  lazy
    from loadtest.testbed.controlplane.programs import ProgramFailed  # noqa: PLC0415  lazy

    try:
        sides = (arguments.side,) if arguments.side else kueuerunner.SIDES
        settings = kueuerunner.Settings(arguments.config, arguments.scale, sides)
        result = kueuerunner.run(settings)
    except (AssetError, ProgramFailed, ValueError, kueuerunner.KueueRunnerError) as error:
        raise Failure(str(error)) from error
    show("kueue-runner", result, as_json=arguments.json)
    return 0
