"""`muster demo`, `loadtest`, `bench`, `assets` and `release`, which only a source tree has.

Images and wheels contain the product only. Where the package ``loadtest`` can be imported, its
commands are added; elsewhere each of these commands fails with a message that names the place.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from muster.cli.output import Failure

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_NAMES: Final = ("demo", "loadtest", "bench", "assets", "release")
_BESIDE: Final = Path(__file__).resolve().parents[2] / "loadtest" / "__init__.py"


def register(commands: Subparsers) -> None:
    """Add the commands of the source tree, or commands that fail with that message."""
    if is_here():
        import_module("loadtest.cli").register(commands)
        return
    for name in _NAMES:
        command = commands.add_parser(
            name, help="needs the source tree", add_help=False, prefix_chars="\0"
        )
        command.add_argument("arguments", nargs="*")
        command.set_defaults(run=_refuse, name=name)


def is_here() -> bool:
    """Return whether the load test beside this package can be imported."""
    found = find_spec("loadtest")
    where = None if found is None else found.origin
    return where is not None and Path(where).resolve() == _BESIDE


def _refuse(arguments: argparse.Namespace) -> int:
    raise Failure(
        f"{arguments.name} needs Muster's source tree, which is not installed here: "
        "clone the repository and run `make install` in it"
    )
