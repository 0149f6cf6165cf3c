"""`muster drain`: have gangs leave nodes whole, and see how far that is."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import msgspec

from muster.apiwire import drains
from muster.apiwire.drains import DrainsAnswer
from muster.cli import output
from muster.cli.ask import client, drainviews, outputs, watch
from muster.cli.output import ExitCode, Failure
from muster.cli.reach import way

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_TIMEOUT_S: Final = 30.0
_EVERY_S: Final = 2.0
_USAGE: Final = ExitCode.USAGE


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = client.add(
        commands, "drain", "have gangs leave nodes whole; without a node: how far it is", run=_drain
    )
    command.add_argument("nodes", nargs="*", metavar="NODE", help="nodes that gangs leave")
    how = command.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="only say which gangs would end")
    how.add_argument("--cancel", action="store_true", help="gangs may stay; uncordons the nodes")
    how.add_argument(
        "--wait",
        type=float,
        metavar="SECONDS",
        help="print what changes until no gang is left there, for so long at most",
    )
    command.add_argument(
        "--deadline",
        type=float,
        metavar="SECONDS",
        help="from then on gangs end though there is no other place (default: never)",
    )


def _drain(arguments: argparse.Namespace) -> int:
    _check(arguments)
    if arguments.cancel:
        _change(arguments)
        names = ", ".join(arguments.nodes)
        output.say(f"gangs may stay on {names}; what has ended is not undone")
        return 0
    if arguments.nodes and not arguments.dry_run:
        _change(arguments)
    if arguments.wait is not None:
        return _waits(arguments)
    raw = _ask(arguments, named=True)
    outputs.show(arguments, raw, lambda: drainviews.drains(raw, dry=arguments.dry_run))
    return 0


def _check(arguments: argparse.Namespace) -> None:
    for flag in ("dry_run", "cancel"):
        if getattr(arguments, flag) and not arguments.nodes:
            name = flag.replace("_", "-")
            raise Failure(f"--{name}: name the nodes: muster drain NODE --{name}", code=_USAGE)
    for flag in ("wait", "deadline"):
        if (value := getattr(arguments, flag)) is not None and value < 0:
            raise Failure(f"--{flag} {value:g}: allowed are 0 or more seconds", code=_USAGE)


def _change(arguments: argparse.Namespace) -> None:
    """Mark the nodes, or take the marks back. Raises ``Failure``."""
    from muster.cli.cluster import run_against  # noqa: PLC0415  lazy
    from muster.cli.ops import draining  # noqa: PLC0415  lazy

    nodes, deadline = arguments.nodes, arguments.deadline
    if arguments.cancel:
        run_against(arguments, lambda auth: draining.cancel(auth, nodes))
        return
    until = None if deadline is None else time.time() + deadline
    run_against(arguments, lambda auth: draining.request(auth, nodes, until))


def _ask(arguments: argparse.Namespace, *, named: bool) -> bytes:
    query = urlencode([("node", name) for name in arguments.nodes]) if named else ""
    return way.ask(arguments, f"{drains.PATH}?{query}" if query else drains.PATH, _TIMEOUT_S)


def _waits(arguments: argparse.Namespace) -> int:
    """Print what changes until no gang is left; returns whether that is so at the end."""
    end = time.monotonic() + arguments.wait
    before = ""
    while True:
        raw = _of(arguments, _ask(arguments, named=False))
        text = outputs.shown(outputs.Format.of(arguments), raw, partial(drainviews.drains, raw))
        for line in watch.changes(before, text, whole=bool(arguments.json)):
            output.say(line)
        before = text
        sys.stdout.flush()
        if drainviews.is_done(raw, arguments.nodes):
            return 0
        if time.monotonic() >= end:
            return ExitCode.NO
        time.sleep(min(_EVERY_S, max(end - time.monotonic(), 0.0)))


def _of(arguments: argparse.Namespace, raw: bytes) -> bytes:
    """Return an answer with the nodes that were named alone; all where none was."""
    found = msgspec.json.decode(raw, type=DrainsAnswer)
    wanted = [one for one in found.nodes if not arguments.nodes or one.node in arguments.nodes]
    return msgspec.json.encode(msgspec.structs.replace(found, nodes=tuple(wanted)))
