"""`muster status`, `muster gangs`, `muster explain`: ask a running extender."""

from __future__ import annotations

import argparse
import os
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Final

from cli.output import Failure

if TYPE_CHECKING:
    from cli.output import Subparsers

_DEFAULT: Final = "http://127.0.0.1:8888"
_TIMEOUT_S: Final = 10.0


def register(commands: Subparsers) -> None:
    """Add the three commands."""
    _add(commands, "status", "what the extender knows and whether it is ready")
    _add(commands, "gangs", "all gangs with their phase")
    explain = _add(commands, "explain", "why a pod waits, and what would free it")
    explain.add_argument("pod", metavar="NAMESPACE/POD")


def _add(commands: Subparsers, name: str, purpose: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=purpose)
    command.add_argument(
        "--extender",
        metavar="URL",
        default=os.environ.get("MUSTER_EXTENDER", _DEFAULT),
        help=f"the extender's address (default: $MUSTER_EXTENDER, else {_DEFAULT})",
    )
    command.add_argument("--json", action="store_true", help="print the reply as it came")
    command.set_defaults(run=_run, command=name, pod="")
    return command


def _run(arguments: argparse.Namespace) -> int:
    path = f"/v1/{arguments.command}"
    if arguments.command == "explain":
        path += f"/{_pod(arguments.pod)}"
    raw = _get(arguments.extender.rstrip("/") + path)
    if arguments.json:
        print(raw.decode())
        return 0
    from cli import views  # noqa: PLC0415  rich is loaded for people only

    views.render(arguments.command, raw)
    return 0


def _pod(text: str) -> str:
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise Failure(f"pod {text!r}: write NAMESPACE/POD, for example default/train-0")
    return text


def _get(url: str) -> bytes:
    if not url.startswith(("http://", "https://")):
        raise Failure(f"--extender {url!r}: must begin with http:// or https://")
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as reply:  # noqa: S310  checked above
            body: bytes = reply.read()
            return body
    except urllib.error.HTTPError as refused:
        raise Failure(f"{url}: {refused.code} {refused.read(2000).decode()}") from refused
    except OSError as error:
        raise Failure(f"{url}: {error}; name the extender with --extender URL") from error
