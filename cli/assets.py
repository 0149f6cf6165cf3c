"""`muster assets`: build the real control plane and fetch the dialects' CRDs, once."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from cli.output import Subparsers


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser("assets", help="build etcd and Kubernetes, fetch CRDs, for tests")
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest import crds  # noqa: PLC0415  lazy
    from loadtest.assets import AssetError, ensure, ensure_volcano  # noqa: PLC0415  lazy

    def progress(line: str) -> None:
        print(line, file=sys.stderr)

    try:
        found, volcano = ensure(progress), ensure_volcano(progress)
        definitions = crds.ensure(progress)
    except AssetError as error:
        raise Failure(str(error)) from error
    paths = {name: str(path) for name, path in asdict(found).items()}
    paths |= {"volcano_controller_manager": str(volcano), "crds": str(definitions)}
    show("control plane", paths, as_json=arguments.json)
    return 0
