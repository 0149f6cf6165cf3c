"""`muster bench order`: who is next among many queues and gangs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from muster.cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(kinds: Subparsers) -> None:
    """Add `bench order`."""
    command = kinds.add_parser(
        "order", help="who is next among many queues and waiting gangs, and a queue that changes"
    )
    command.add_argument("--queues", type=int, default=10_000)
    command.add_argument("--gangs", type=int, default=100_000, help="gangs that wait")
    command.add_argument("--decisions", type=int, default=20_000)
    command.add_argument(
        "--heads", type=int, default=200, help="ClusterQueues with a Workload, for fair sharing"
    )
    command.add_argument("--seed", type=int, default=0)
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest.benches import order  # noqa: PLC0415  lazy, as the other benches

    try:
        settings = order.Settings(
            queues=arguments.queues,
            gangs=arguments.gangs,
            decisions=arguments.decisions,
            seed=arguments.seed,
            heads=arguments.heads,
        )
    except ValueError as error:
        raise Failure(str(error)) from error
    show("order", order.run(settings), as_json=arguments.json)
    return 0
