"""`muster withdraw`: the steps before Muster is uninstalled (docs/runbooks/uninstall.md)."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from muster.cli.cluster import add_cluster_flags, run_against
from muster.cli.output import say

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_WAIT_S: Final = 120.0


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser("withdraw", help="make uninstalling safe: no pod is left waiting")
    command.add_argument("--namespace", default="muster-system", help="where Muster runs")
    command.add_argument(
        "--scheduler", metavar="NAME", help="the second scheduler, whose pods are waited for"
    )
    command.add_argument(
        "--wait", type=float, default=_WAIT_S, metavar="SECONDS", help="for how long"
    )
    command.add_argument(
        "--leftovers",
        action="store_true",
        help="afterwards: delete the Secrets and Leases that Muster's programs made",
    )
    add_cluster_flags(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from muster.cli.ops import withdrawal  # noqa: PLC0415  lazy

    if arguments.leftovers:
        deleted = run_against(
            arguments, lambda auth: withdrawal.delete_leftovers(auth, arguments.namespace)
        )
        for line in deleted:
            say(line)
        return 0
    asked = withdrawal.Withdrawal(arguments.namespace, arguments.scheduler, arguments.wait)
    outcome = run_against(arguments, lambda auth: withdrawal.withdraw(auth, asked))
    for line in outcome.done:
        say(line)
    for line in outcome.obstacles:
        say(f"muster: {line}", to=sys.stderr)
    return 1 if outcome.obstacles else 0
