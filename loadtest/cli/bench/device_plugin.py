"""`muster bench device-plugin`: the device plugin's answers, memory and idleness."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from muster.cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(kinds: Subparsers) -> None:
    """Add `bench device-plugin`."""
    command = kinds.add_parser(
        "device-plugin", help="a node's plugin: choices, news of faults, memory, idle CPU"
    )
    command.add_argument("--devices", type=int, default=8, help="GPUs, a multiple of 8")
    command.add_argument("--calls", type=int, default=2000, help="of GetPreferredAllocation")
    command.add_argument("--idle-seconds", type=float, default=20.0)
    command.add_argument("--seed", type=int, default=1)
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest.benches import device_plugin  # noqa: PLC0415  lazy, as the other benches

    try:
        settings = device_plugin.Settings(
            devices=arguments.devices,
            calls=arguments.calls,
            idle_seconds=arguments.idle_seconds,
            seed=arguments.seed,
        )
    except ValueError as error:
        raise Failure(str(error)) from error
    show("device-plugin", device_plugin.run(settings), as_json=arguments.json)
    return 0
