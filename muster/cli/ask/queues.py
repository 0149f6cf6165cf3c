"""`muster queues`, `muster queue NAME`: who shares the cluster, and who waits."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from muster.apiwire import queues
from muster.cli.ask import client, queueviews, watch
from muster.cli.ask.outputs import Format
from muster.cli.reach import way

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_TIMEOUT_S: Final = 30.0


def register(commands: Subparsers) -> None:
    """Add the two commands."""
    tree = client.add(commands, "queues", "the tree of queues: who uses what of what", run=_queues)
    watch.add_flags(tree)
    one = client.add(commands, "queue", "one queue, and who waits in it in which order", run=_queue)
    one.add_argument("name", metavar="NAME", help="NAME, or DIALECT/NAME where two are named so")
    watch.add_flags(one)


def _queues(arguments: argparse.Namespace) -> int:
    def look() -> bytes:
        return way.ask(arguments, queues.PATH, _TIMEOUT_S)

    def text(raw: bytes, _now: float) -> str:
        return queueviews.queues(raw, wide=Format.of(arguments) is Format.WIDE)

    return watch.show(arguments, look, text)


def _queue(arguments: argparse.Namespace) -> int:
    def look() -> bytes:
        return way.ask(arguments, f"{queues.PATH}/{arguments.name}", _TIMEOUT_S)

    def text(raw: bytes, now: float) -> str:
        return queueviews.queue(raw, now)

    return watch.show(arguments, look, text)
