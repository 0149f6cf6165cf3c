"""`muster story`: what happened to a pod or a gang in the extender, and what caused it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from muster.apiwire import story as wire
from muster.cli import output
from muster.cli.ask import client, outputs, storyviews, subjects
from muster.cli.reach import way

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_TIMEOUT_S: Final = 30.0


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = client.add(
        commands, "story", "what happened to a pod or a gang, and what caused it", run=_run
    )
    command.add_argument(
        "subject", metavar="SUBJECT", help="pod/NAME, gang/NAME, NAMESPACE/POD, or NAME of a pod"
    )
    command.add_argument("-n", "--namespace", default="", help="its (default: the context's)")
    command.add_argument(
        "--limit", type=int, default=wire.MOST, metavar="N", help="the last N entries"
    )


def _run(arguments: argparse.Namespace) -> int:
    asked = subjects.subject(arguments.subject, lambda: way.namespace_of(arguments))
    path = f"{wire.PATH}/{asked.kind}/{asked.namespace}/{asked.name}?limit={arguments.limit}"
    raw = way.ask(arguments, path, _TIMEOUT_S)
    outputs.show(arguments, raw, lambda: storyviews.story(raw, output.width()))
    return 0
