"""`muster probe URL`: ask a health page with a client certificate, as a kubelet cannot.

The extender answers nobody who shows no certificate of its authority, and an httpGet probe has
none to show. Exit code 0 for any 2xx, 1 for the rest, with what was answered.
"""

from __future__ import annotations

import argparse
import ssl
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Final

from cli.output import Failure

if TYPE_CHECKING:
    from cli.output import Subparsers

_SHOWN: Final = 2000  # bytes of an answer


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser("probe", help="ask a health page, with a client certificate")
    command.add_argument("url", metavar="URL")
    command.add_argument("--ca", metavar="FILE", help="who may have signed the server's")
    command.add_argument("--cert", metavar="FILE", help="certificate to show")
    command.add_argument("--key", metavar="FILE", help="its key")
    command.add_argument("--timeout", type=float, default=4.0, metavar="SECONDS")
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if not arguments.url.startswith(("http://", "https://")):
        raise Failure(f"URL {arguments.url!r}: must begin with http:// or https://")
    try:
        context = _context(arguments)
        with urllib.request.urlopen(  # noqa: S310  checked above
            arguments.url, timeout=arguments.timeout, context=context
        ) as reply:
            reply.read(_SHOWN)
    except urllib.error.HTTPError as refused:
        print(refused.read(_SHOWN).decode(errors="replace"), file=sys.stderr)
        return 1
    except OSError as error:
        raise Failure(f"{arguments.url}: {error}") from error
    return 0


def _context(arguments: argparse.Namespace) -> ssl.SSLContext | None:
    if not arguments.url.startswith("https://"):
        return None
    context = ssl.create_default_context(cafile=arguments.ca)
    if arguments.cert:
        context.load_cert_chain(arguments.cert, arguments.key)
    return context
