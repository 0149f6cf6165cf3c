"""`muster bench webhook`: admission reviews over TLS."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from muster.cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(kinds: Subparsers) -> None:
    """Add `bench webhook`."""
    command = kinds.add_parser(
        "webhook", help="admission reviews over TLS: throughput, latency, rotation, bad clients"
    )
    command.add_argument("--connections", type=int, default=16)
    command.add_argument("--rate", type=float, default=1500.0, help="open loop, requests/s")
    command.add_argument("--rounds", type=int, default=5)
    command.add_argument("--seconds", type=float, default=3.0, help="of each round and side")
    command.add_argument(
        "--poisson", action="store_true", help="open loop with random gaps instead of equal ones"
    )
    command.add_argument(
        "--alone", action="store_true", help="every pod of a job of its own: no answer is shared"
    )
    command.add_argument("--slow-clients", type=int, default=1000, help="0: leave that phase out")
    command.add_argument("--rotations", type=int, default=3, help="0: leave that phase out")
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest.benches import webhook  # noqa: PLC0415  lazy, as the other benches

    try:
        settings = webhook.Settings(
            connections=arguments.connections,
            rate=arguments.rate,
            rounds=arguments.rounds,
            seconds=arguments.seconds,
            poisson=arguments.poisson,
            alone=arguments.alone,
            slow_clients=arguments.slow_clients,
            rotations=arguments.rotations,
        )
    except ValueError as error:
        raise Failure(str(error)) from error
    show("webhook", webhook.run(settings), as_json=arguments.json)
    return 0
