"""`muster config from-volcano FILE`: the configuration of Volcano's scheduler as the extender's.

The extender's configuration goes to standard output. Every setting that is not in it is named on
standard error, with its place and what Muster does instead. The exit status is 0, or 1 for a file
that cannot be read or is no such configuration.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from muster.cli.output import Failure, say

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(commands: Subparsers) -> None:
    """Add `config` and its commands."""
    top = commands.add_parser("config", help="make the extender's configuration from another's")
    sources = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    command = sources.add_parser(
        "from-volcano", help="from that of Volcano's scheduler", description=__doc__
    )
    command.add_argument(
        "file",
        metavar="FILE",
        help="volcano-scheduler.conf, or the ConfigMap that has it; - reads standard input",
    )
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    import yaml  # noqa: PLC0415  --help starts without it

    from muster.cli.config import volcanofile, volcanosettings  # noqa: PLC0415  lazy

    name = "standard input" if arguments.file == "-" else arguments.file
    try:
        file = volcanofile.read(_text(arguments.file), name)
    except OSError as error:
        raise Failure(f"{name}: cannot be read: {error.strerror}; name another file") from error
    except ValueError as error:
        raise Failure(str(error)) from error
    made = volcanosettings.translated(file)
    configuration = yaml.safe_dump(made.configuration, sort_keys=False)
    for line in made.lines:
        say(f"muster: {line}", to=sys.stderr)
    print(configuration, end="")
    return 0


def _text(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
