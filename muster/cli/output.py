"""Output of the commands: one JSON object, or a table for people."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, TextIO

from muster.observability.printable import printable

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001  no public name


class ExitCode(IntEnum):
    """Exit codes of every command (docs/cli.md)."""

    OK = 0
    NO = 1  # the answer is no, something is broken, or the command failed
    USAGE = 2  # what was typed, or a file that it names; argparse's own code
    UNREACHED = 3  # there is no answer
    DENIED = 4  # there is an answer, and it is that we may not


class Failure(Exception):
    """A command failed; the message is the reason and what to do."""

    def __init__(self, text: str, *, code: ExitCode = ExitCode.NO) -> None:
        super().__init__(text)
        self.code = code


def say(text: str, *, to: TextIO | None = None) -> None:
    """Print text that may hold names and messages of others, to standard output by default."""
    print(printable(text), file=to)


def width() -> int | None:
    """Return the width of the terminal on standard output, None for none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def add_json_flag(command: argparse.ArgumentParser) -> None:
    """Add --json."""
    command.add_argument("--json", action="store_true", help="print one JSON object, nothing else")


def show(title: str, result: Mapping[str, object], *, as_json: bool) -> None:
    """Print a flat result as one JSON object or as a two-column table."""
    if as_json:
        print(json.dumps(result))
        return
    from rich.console import Console  # noqa: PLC0415  --json and --help start without it
    from rich.table import Table  # noqa: PLC0415  lazy

    table = Table(title=title, show_header=False)
    for key, value in result.items():
        table.add_row(key, _text(value))
    Console().print(table)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    return str(value)
