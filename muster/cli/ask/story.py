"""`muster story`: what happened to a pod or a gang in the extender, and what caused it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from muster.apiwire import story as wire
from muster.cli import output
from muster.cli.ask import client, storyviews
from muster.cli.output import Failure

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_TIMEOUT_S: Final = 30.0
_KINDS: Final = {
    "pod": "pod", "pods": "pod", "po": "pod", "gang": "gang", "gangs": "gang",
}  # fmt: skip


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = client.add(
        commands, "story", "what happened to a pod or a gang, and what caused it", run=_run
    )
    command.add_argument("subject", metavar="POD|GANG", help="pod/NAME or gang/NAME; NAME: a pod")
    command.add_argument("-n", "--namespace", default="", help="its namespace (default: default)")
    command.add_argument(
        "--limit", type=int, default=wire.MOST, metavar="N", help="the last N entries"
    )
    command.add_argument("-o", "--output", choices=["json"], help="json: the same as --json")


def _run(arguments: argparse.Namespace) -> int:
    kind, name = subject(arguments.subject)
    namespace = arguments.namespace or "default"
    path = f"{wire.PATH}/{kind}/{namespace}/{name}?limit={arguments.limit}"
    raw = client.ask(arguments, path, _TIMEOUT_S)
    as_json = arguments.json or arguments.output == "json"
    output.say(raw.decode() if as_json else storyviews.story(raw, output.width()))
    return 0


def subject(text: str) -> tuple[str, str]:
    """Return kind and name of ``pod/NAME``, ``gang/NAME`` or ``NAME``, a pod's.

    Raises ``Failure`` for anything else.
    """
    kind, slash, name = text.partition("/")
    if not slash:
        kind, name = "pod", text
    if kind not in _KINDS or not name or "/" in name:
        raise Failure(f"{text!r}: write pod/NAME or gang/NAME, and the namespace with -n")
    return _KINDS[kind], name
