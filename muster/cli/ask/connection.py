"""How the commands reach the extender, with a certificate or a token.

Every flag has an environment variable, so that a shell can be set up once: MUSTER_EXTENDER,
MUSTER_CA, MUSTER_CERT, MUSTER_KEY, MUSTER_TOKEN_FILE.
"""

from __future__ import annotations

import argparse
import os
import ssl
import sys
import urllib.request
from http.client import HTTPResponse
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

from muster.cli.output import ExitCode, Failure
from muster.cli.reach.exchange import is_here

if TYPE_CHECKING:
    from email.message import Message

_STDIN: Final = "-"
_FLAGS: Final = (
    ("ca", "MUSTER_CA", "who may have signed the extender's certificate"),
    ("cert", "MUSTER_CERT", "certificate to show"),
    ("key", "MUSTER_KEY", "its key"),
    ("token-file", "MUSTER_TOKEN_FILE", "file with a bearer token to send; - is standard input"),
)


def add_flags(command: argparse._ActionsContainer) -> None:
    """Add the flags of a connection, except its URL."""
    for name, variable, purpose in _FLAGS:
        command.add_argument(
            f"--{name}",
            metavar="FILE",
            default=os.environ.get(variable) or None,
            help=f"{purpose} (default: ${variable})",
        )


def get(
    url: str,
    arguments: argparse.Namespace,
    timeout_s: float,
    limit: int = -1,
    *,
    body: bytes | None = None,
) -> bytes:
    """Return the body of a 2xx answer, `limit` bytes at most; with a `body` it is a POST of JSON.

    Raises `urllib.error.HTTPError` for any other answer, `OSError` if there is none, and `Failure`
    for flags that cannot be used.
    """
    if not url.startswith(("http://", "https://")):
        raise Failure(f"URL {url!r}: must begin with http:// or https://", code=ExitCode.USAGE)
    headers = _headers(url, arguments)
    if body is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, data=body, headers=headers)  # noqa: S310  see above
    handlers: list[urllib.request.BaseHandler] = [_Stay()]
    if url.startswith("https://"):
        handlers.append(urllib.request.HTTPSHandler(context=_context(arguments)))
    with urllib.request.build_opener(*handlers).open(request, timeout=timeout_s) as reply:
        return cast("HTTPResponse", reply).read(None if limit < 0 else limit)


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token would be sent to its target."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> None:
        """Return nothing, which makes the answer an error."""


def _headers(url: str, arguments: argparse.Namespace) -> dict[str, str]:
    if arguments.token_file is None:
        return {}
    if not url.startswith("https://") and not is_here(url):
        text = f"{url}: a token is not sent in the clear; use https://"
        raise Failure(text, code=ExitCode.USAGE)
    source = arguments.token_file
    try:
        text = sys.stdin.read() if source == _STDIN else Path(source).read_text(encoding="utf-8")
    except OSError as error:
        text = f"--token-file {source}: {error.strerror}"
        raise Failure(text, code=ExitCode.USAGE) from error
    token = text.strip()
    if not token or any(c.isspace() for c in token) or not token.isascii():
        text = f"--token-file {source}: holds no token, that is one word"
        raise Failure(text, code=ExitCode.USAGE)
    return {"Authorization": f"Bearer {token}"}


def _context(arguments: argparse.Namespace) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=arguments.ca)
        if arguments.cert:
            context.load_cert_chain(arguments.cert, arguments.key)
    except OSError as error:  # ssl.SSLError is one
        files = [name for name in (arguments.ca, arguments.cert, arguments.key) if name]
        raise Failure(f"{', '.join(files)}: {error}", code=ExitCode.USAGE) from error
    return context
