"""`muster status`, `muster gangs`, `muster explain`: ask a running extender."""

from __future__ import annotations

import argparse
import os
import time
import urllib.error
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from muster.apiwire import explain, gangs, status
from muster.apiwire.problem import Problem
from muster.cli import output
from muster.cli.ask import connection, views
from muster.cli.output import Failure

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_DEFAULT: Final = "http://127.0.0.1:8888"
_TIMEOUT_S: Final = 10.0
_PODS: Final = frozenset({"pod", "pods", "po"})


def register(commands: Subparsers) -> None:
    """Add the three commands."""
    add(commands, "status", "what the extender knows and whether it is ready", run=_status)
    add(commands, "gangs", "all gangs with their phase", run=_gangs)
    command = add(commands, "explain", "why a pod waits, and what would free it", run=_explain)
    command.add_argument("pod", metavar="POD", help="NAME, pod/NAME or NAMESPACE/NAME")
    command.add_argument("-n", "--namespace", default="", help="the pod's (default: default)")


def add(
    commands: Subparsers, name: str, purpose: str, *, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """Add a command that asks a running extender."""
    command = commands.add_parser(name, help=purpose)
    command.add_argument(
        "--extender",
        metavar="URL",
        default=os.environ.get("MUSTER_EXTENDER", _DEFAULT),
        help=f"the extender's address (default: $MUSTER_EXTENDER, else {_DEFAULT})",
    )
    connection.add_flags(command)
    command.add_argument("--json", action="store_true", help="print the reply as it came")
    command.set_defaults(run=run, command=name)
    return command


def _status(arguments: argparse.Namespace) -> int:
    return _show(arguments, status.PATH, lambda raw: views.status(raw, time.time()))


def _gangs(arguments: argparse.Namespace) -> int:
    return _show(arguments, gangs.PATH, lambda raw: views.gangs(raw, time.time()))


def _explain(arguments: argparse.Namespace) -> int:
    namespace, name = pod_named(arguments.pod, arguments.namespace)
    path = f"{explain.PATH}/{namespace}/{name}"
    return _show(arguments, path, lambda raw: views.explanation(raw, time.time(), output.width()))


def _show(arguments: argparse.Namespace, path: str, view: Callable[[bytes], str]) -> int:
    raw = ask(arguments, path, _TIMEOUT_S)
    output.say(raw.decode() if arguments.json else view(raw))
    return 0


def pod_named(text: str, namespace: str) -> tuple[str, str]:
    """Return namespace and name of ``NAME``, ``pod/NAME`` or ``NAMESPACE/NAME``.

    With a ``namespace`` given, only the kind may be before a slash. Raises ``Failure`` for anything
    else.
    """
    before, slash, name = text.rpartition("/")
    if not name or "/" in before or (slash and not before):
        raise Failure(f"pod {text!r}: write NAME, pod/NAME or NAMESPACE/NAME")
    if not before or before in _PODS:
        return namespace or "default", name
    if namespace:
        raise Failure(f"{text!r}: only pods can be explained; write pod/{name}")
    return before, name


def ask(
    arguments: argparse.Namespace, path: str, timeout_s: float, body: bytes | None = None
) -> bytes:
    """Return the extender's answer to a GET, or to a POST of a ``body``.

    Raises ``Failure`` with the extender's error, or with why it cannot be reached.
    """
    url = arguments.extender.rstrip("/") + path
    try:
        return connection.get(url, arguments, timeout_s, body=body)
    except urllib.error.HTTPError as refused:
        raise Failure(_error(refused.read(2000)) or f"{url}: {refused}") from refused
    except OSError as error:
        raise Failure(f"{url}: {error}; name the extender with --extender URL") from error


def _error(body: bytes) -> str:
    """Return the error in an answer of the extender, "" for an answer of another server."""
    try:
        return msgspec.json.decode(body, type=Problem).error
    except msgspec.MsgspecError:
        return ""
