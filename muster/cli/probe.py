"""`muster probe URL`: ask a page with a client certificate or a token, as a kubelet cannot.

An extender that accepts no tokens answers only clients with a certificate of its authority, also on
its health pages, and an httpGet probe has no certificate. The exit code is 0 for any 2xx and 1 for
the rest; the answer is printed.
"""

from __future__ import annotations

import argparse
import sys
import urllib.error
from typing import TYPE_CHECKING, Final

from muster.cli.ask import connection
from muster.cli.output import Failure, say

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_SHOWN: Final = 2000  # bytes of an answer


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser("probe", help="ask a page, with a client certificate or a token")
    command.add_argument("url", metavar="URL")
    connection.add_flags(command)
    command.add_argument("--timeout", type=float, default=4.0, metavar="SECONDS")
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    try:
        connection.get(arguments.url, arguments, arguments.timeout, _SHOWN)
    except urllib.error.HTTPError as refused:
        say(refused.read(_SHOWN).decode(errors="replace"), to=sys.stderr)
        return 1
    except OSError as error:
        raise Failure(f"{arguments.url}: {error}") from error
    return 0
