"""`muster certificates`: makes the certificates of extender and kube-scheduler, or judges some."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from muster.cli.cluster import add_cluster_flags, run_against
from muster.cli.output import Failure, say

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_CLUSTER_IP: Final = "10.96.0.80"  # of the Service muster-extender as shipped


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser(
        "certificates", help="make the certificates between kube-scheduler and the extender"
    )
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument("--output", type=Path, metavar="DIR", help="as files")
    where.add_argument(
        "--in-cluster", action="store_true", help="as Secrets, where they lack, misfit or expire"
    )
    where.add_argument(
        "--check", action="store_true", help="make nothing; say whether two Secrets fit"
    )
    command.add_argument(
        "--address",
        action="append",
        metavar="IP",
        help=f"the extender's Service address, again for more (default: {_CLUSTER_IP})",
    )
    command.add_argument("--namespace", default="muster-system")
    command.add_argument("--days", type=int, default=365, help="how long they are valid")
    command.add_argument(
        "--renew-before-days",
        type=int,
        default=0,
        metavar="DAYS",
        help="with --in-cluster: make them anew when less is left (default: when they expired)",
    )
    command.add_argument("--extender-secret", default="muster-extender-tls", metavar="NAME")
    command.add_argument("--scheduler-secret", default="muster-scheduler-client", metavar="NAME")
    add_cluster_flags(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.in_cluster:
        return _ensure(arguments)
    return _check(arguments) if arguments.check else _write(arguments)


def _write(arguments: argparse.Namespace) -> int:
    from muster.cli.ops.issuing import write  # noqa: PLC0415  lazy

    addresses = tuple(arguments.address or (_CLUSTER_IP,))
    try:
        made = write(arguments.output, arguments.namespace, addresses, arguments.days)
    except (OSError, ValueError) as error:
        raise Failure(str(error)) from error
    for path, purpose in made:
        print(f"{path}: {purpose}")
    return 0


def _ensure(arguments: argparse.Namespace) -> int:
    from muster.cli.ops import clustercertificates  # noqa: PLC0415  lazy

    wanted = clustercertificates.Wanted(
        arguments.namespace,
        tuple(arguments.address or ()),
        arguments.days,
        arguments.renew_before_days,
    )
    if wanted.renew_before_days >= wanted.days:
        raise Failure(
            f"--renew-before-days {wanted.renew_before_days}: must be less than "
            f"--days {wanted.days}"
        )
    try:
        done = run_against(arguments, lambda auth: clustercertificates.ensure(auth, wanted))
    except ValueError as error:
        raise Failure(str(error)) from error
    for line in done:
        say(line)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from muster.cli.ops import clustercertificates  # noqa: PLC0415  lazy

    namespace, extender = arguments.namespace, arguments.extender_secret
    scheduler = arguments.scheduler_secret
    found = run_against(
        arguments,
        lambda auth: clustercertificates.problems(auth, namespace, extender, scheduler),
    )
    for problem in found:
        say(f"muster: {problem}", to=sys.stderr)
    if not found:
        say(f"Secrets {namespace}/{extender} and {namespace}/{scheduler} fit each other")
    return 1 if found else 0
