"""`muster assets`: build the real control plane and fetch the dialects' CRDs, once."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from cli.output import Subparsers
    from loadtest.assets import Minor


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser("assets", help="build etcd and Kubernetes, fetch CRDs, for tests")
    command.add_argument(
        "--kubernetes", metavar="MINOR", help="one minor alone, such as 1.36 (default: all)"
    )
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest import assets, crds  # noqa: PLC0415  lazy

    minors = [kubernetes_minor(arguments.kubernetes)] if arguments.kubernetes else assets.MINORS
    try:
        found = {minor: assets.ensure(_report, minor) for minor in minors}
        tools = {
            "kustomize": str(assets.ensure_kustomize(_report)),
            "volcano_controller_manager": str(assets.ensure_volcano(_report)),
            "crds": str(crds.ensure(_report)),
        }
    except assets.AssetError as error:
        raise Failure(str(error)) from error
    paths = {m: {name: str(path) for name, path in asdict(a).items()} for m, a in found.items()}
    if arguments.json:
        print(json.dumps({**paths, **tools}))
    else:
        for minor, programs in paths.items():
            show(f"Kubernetes {minor}", programs, as_json=False)
        show("tools", tools, as_json=False)
    return 0


def _report(line: str) -> None:
    print(line, file=sys.stderr)


def kubernetes_minor(text: str) -> Minor:
    """Return one of the minors that can be built; Failure names them all."""
    from loadtest.assets import MINORS  # noqa: PLC0415  lazy

    for minor in MINORS:
        if text.removeprefix("v") == minor:
            return minor
    raise Failure(f"--kubernetes {text}: not one of {', '.join(MINORS)}")
