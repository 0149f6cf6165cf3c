"""`muster ungate`: take Muster's gate off pods by hand, in an emergency and before uninstalling."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from muster.cli.cluster import add_cluster_flags, run_against
from muster.cli.output import Failure, add_json_flag, say, show

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_STILL_GATES = (
    "muster: the webhook still gates new pods: delete its configuration first "
    "(kubectl delete mutatingwebhookconfiguration muster-webhook), or run this again"
)


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser("ungate", help="take Muster's gate off pods by hand")
    command.add_argument("pods", nargs="*", metavar="NAMESPACE/POD")
    command.add_argument("--all", action="store_true", help="every gated pod of the cluster")
    command.add_argument("--namespace", help="every gated pod of this namespace")
    command.add_argument("--dry-run", action="store_true", help="only print which ones")
    add_cluster_flags(command)
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    from muster.cli.ops.ungating import PodChoice, ungate  # noqa: PLC0415  lazy

    choice = PodChoice(tuple(arguments.pods), arguments.namespace, dry_run=arguments.dry_run)
    done = run_against(arguments, lambda auth: ungate(auth, choice))
    for line in done.refusals:
        say(f"muster: {line}", to=sys.stderr)
    if done.webhook_gates and arguments.all:
        print(_STILL_GATES, file=sys.stderr)
    show("ungate", done.figures(), as_json=arguments.json)
    return 1 if done.refusals else 0


def _check(arguments: argparse.Namespace) -> None:
    if sum((bool(arguments.pods), arguments.all, bool(arguments.namespace))) != 1:
        raise Failure("name the pods: NAMESPACE/POD …, --namespace NAMESPACE, or --all")
    for name in arguments.pods:
        if name.count("/") != 1 or not all(name.split("/")):
            raise Failure(f"pod {name!r}: write NAMESPACE/POD, for example default/train-0")
