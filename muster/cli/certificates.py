"""`muster certificates`: makes the certificates of extender and kube-scheduler."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from muster.cli.output import Failure

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_CLUSTER_IP: Final = "10.96.0.80"  # of the Service muster-extender as shipped


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser(
        "certificates", help="make the certificates between kube-scheduler and the extender"
    )
    command.add_argument("--output", type=Path, required=True, metavar="DIR")
    command.add_argument(
        "--address",
        action="append",
        metavar="IP",
        help=f"the extender's Service address, again for more (default: {_CLUSTER_IP})",
    )
    command.add_argument("--namespace", default="muster-system")
    command.add_argument("--days", type=int, default=365, help="how long they are valid")
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from muster.cli.ops.issuing import write  # noqa: PLC0415  lazy

    addresses = tuple(arguments.address or (_CLUSTER_IP,))
    try:
        made = write(arguments.output, arguments.namespace, addresses, arguments.days)
    except (OSError, ValueError) as error:
        raise Failure(str(error)) from error
    for path, purpose in made:
        print(f"{path}: {purpose}")
    return 0
