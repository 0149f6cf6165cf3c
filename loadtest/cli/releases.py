"""`muster release`: the files of a release, or the image alone, made in the source tree."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from muster.cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser("release", help="build image, wheel, chart, plugin, checksums")
    command.add_argument(
        "what", nargs="?", choices=("all", "image"), default="all", help="default: all"
    )
    command.add_argument(
        "--output", type=Path, default=Path("dist"), help="an empty directory (default: dist)"
    )
    command.add_argument("--name", default="muster", help="the image's repository")
    command.add_argument(
        "--url", help="where the files will be published; krew's manifest names it", default=""
    )
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest.release import assembly  # noqa: PLC0415  lazy
    from loadtest.testbed.controlplane.assets import AssetError  # noqa: PLC0415  lazy

    try:
        if arguments.what == "image":
            made = assembly.image(arguments.output, arguments.name, _report)
        else:
            url = arguments.url or assembly.DEFAULT_URL
            made = assembly.everything(arguments.output, arguments.name, url, _report)
    except AssetError as error:
        raise Failure(str(error)) from error
    sizes = {path.name: f"{path.stat().st_size / 1024**2:.1f} MiB" for path in made.files}
    result = {"directory": str(made.directory), "image_digest": made.digest, **sizes}
    show("release", result, as_json=arguments.json)
    return 0


def _report(line: str) -> None:
    print(line, file=sys.stderr)
