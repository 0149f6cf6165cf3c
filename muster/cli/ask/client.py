"""`muster status`, `muster gangs`, `muster explain`: ask a running extender."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from muster.apiwire import explain, gangs, status
from muster.cli import output
from muster.cli.ask import outputs, subjects, views, watch
from muster.cli.ask.outputs import Format
from muster.cli.reach import way

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_TIMEOUT_S: Final = 10.0


def register(commands: Subparsers) -> None:
    """Add the three commands."""
    about = add(commands, "status", "what the extender knows and whether it is ready", run=_status)
    watch.add_flags(about)
    listed = add(commands, "gangs", "gangs with their phase, and why they wait", run=_gangs)
    listed.add_argument("-n", "--namespace", default="", help="whose (default: the context's)")
    listed.add_argument("-A", "--all-namespaces", action="store_true", help="those you may see")
    listed.add_argument("--phase", default="", help="only those in this phase, such as Pending")
    watch.add_flags(listed)
    command = add(
        commands, "explain", "why a pod or a gang waits, what would free it", run=_explain
    )
    command.add_argument(
        "subject", metavar="SUBJECT", help="pod/NAME, gang/NAME, NAMESPACE/POD, or NAME of a pod"
    )
    command.add_argument("-n", "--namespace", default="", help="its (default: the context's)")


def add(
    commands: Subparsers, name: str, purpose: str, *, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """Add a command that asks a running extender."""
    command = commands.add_parser(name, help=purpose)
    outputs.add_flags(command)
    way.add_flags(command)
    command.set_defaults(run=run, command=name)
    return command


def _status(arguments: argparse.Namespace) -> int:
    def look() -> bytes:
        return way.ask(arguments, status.PATH, _TIMEOUT_S)

    return watch.show(arguments, look, views.status)


def _gangs(arguments: argparse.Namespace) -> int:
    namespace = _whose(arguments)
    path = gangs.PATH + subjects.query(phase=arguments.phase, namespace=namespace)

    def look() -> bytes:
        return way.ask(arguments, path, _TIMEOUT_S)

    def text(raw: bytes, now: float) -> str:
        wide = Format.of(arguments) is Format.WIDE
        return views.gangs(raw, now, wide=wide, namespace=namespace)

    return watch.show(arguments, look, text)


def _whose(arguments: argparse.Namespace) -> str:
    """Return the namespace to list, "" for all: with --extender all is the default."""
    if arguments.all_namespaces or (arguments.extender and not arguments.namespace):
        return ""
    return way.namespace_of(arguments)


def _explain(arguments: argparse.Namespace) -> int:
    asked = subjects.subject(arguments.subject, lambda: way.namespace_of(arguments))
    if arguments.namespace and asked.namespace != arguments.namespace:
        raise output.Failure(
            f"{arguments.subject!r}: only pods and gangs can be explained; write pod/{asked.name}",
            code=output.ExitCode.USAGE,
        )
    path = f"{explain.PATH}/{asked.namespace}/{asked.name}"
    path += subjects.query(kind="gang" if asked.kind == "gang" else "")
    raw = way.ask(arguments, path, _TIMEOUT_S)
    outputs.show(arguments, raw, lambda: views.explanation(raw, time.time(), output.width()))
    return 0
