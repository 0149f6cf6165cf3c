"""`muster probe URL`: ask a page with a client certificate or a token, as a kubelet cannot.

An extender that accepts no tokens answers only clients with a certificate of its authority, also on
its health pages, and an httpGet probe has no certificate. The exit code is 0 for any 2xx and 1 for
the rest; the answer is printed. With --wait it is asked again: the extender's Service has nobody
behind it before one of its pods leads.
"""

from __future__ import annotations

import argparse
import sys
import time
import urllib.error
from typing import TYPE_CHECKING, Final

from muster.cli.ask import connection
from muster.cli.output import say

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_SHOWN: Final = 2000  # bytes of an answer
_AGAIN_S: Final = 0.5


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser("probe", help="ask a page, with a client certificate or a token")
    command.add_argument("url", metavar="URL")
    connection.add_flags(command)
    command.add_argument("--timeout", type=float, default=4.0, metavar="SECONDS")
    command.add_argument(
        "--wait", type=float, default=0.0, metavar="SECONDS", help="ask again for so long"
    )
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    until = time.monotonic() + arguments.wait
    while (refusal := _asked(arguments)) is not None:
        if time.monotonic() > until:
            say(refusal, to=sys.stderr)
            return 1
        time.sleep(_AGAIN_S)
    return 0


def _asked(arguments: argparse.Namespace) -> str | None:
    """Return what is wrong, None for a good answer."""
    try:
        connection.get(arguments.url, arguments, arguments.timeout, _SHOWN)
    except urllib.error.HTTPError as refused:
        return refused.read(_SHOWN).decode(errors="replace")
    except OSError as error:
        from muster.cli.reach.refusals import reason  # noqa: PLC0415  lazy

        return f"muster: {arguments.url}: {reason(error)}"
    return None
