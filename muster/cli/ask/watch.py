"""`--watch`: ask again and again, and print what has changed, as kubectl does."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Final

from muster.cli import output
from muster.cli.ask import outputs
from muster.cli.ask.outputs import Format
from muster.cli.output import ExitCode, Failure

_EVERY_S: Final = 2.0
_LEAST_S: Final = 0.2


def add_flags(command: argparse.ArgumentParser) -> None:
    """Add -w and --interval."""
    command.add_argument("-w", "--watch", action="store_true", help="print changes until ^C")
    command.add_argument(
        "--interval",
        type=float,
        default=_EVERY_S,
        metavar="SECONDS",
        help=f"between two looks of --watch (default: {_EVERY_S:g})",
    )


def show(
    arguments: argparse.Namespace, look: Callable[[], bytes], text: Callable[[bytes, float], str]
) -> int:
    """Print what ``look`` returns; with --watch print the lines that are new with each look.

    ``text`` makes it readable as of a time. An extender that cannot be reached for a moment ends
    no watch.
    """
    if arguments.interval < _LEAST_S:
        text_ = f"--interval {arguments.interval:g}: allowed is {_LEAST_S:g} or more"
        raise Failure(text_, code=ExitCode.USAGE)
    form = Format.of(arguments)

    def shown(raw: bytes, now: float) -> str:
        return outputs.shown(form, raw, lambda: text(raw, now))

    before = look()
    output.say(shown(before, time.time()))
    trouble = ""
    while arguments.watch:
        sys.stdout.flush()
        time.sleep(arguments.interval)
        try:
            found = look()
        except Failure as failure:
            if failure.code is not ExitCode.UNREACHED:
                raise
            if str(failure) != trouble:
                trouble = str(failure)
                output.say(f"muster: {trouble}", to=sys.stderr)
            continue
        trouble = ""
        now = time.time()  # for both: what is only older has not changed
        whole = form in (Format.JSON, Format.YAML)
        for line in changes(shown(before, now), shown(found, now), whole=whole):
            output.say(line)
        before = found
    return 0


def changes(before: str, now: str, *, whole: bool) -> list[str]:
    """Return what to print: the lines that are not the same; ``whole``: all of a changed text."""
    if whole:
        return [] if now == before else [now]
    had = set(before.splitlines())
    return [line for line in now.splitlines() if line not in had]
