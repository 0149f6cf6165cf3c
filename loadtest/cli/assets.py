"""`muster assets`: build the real control plane and node, fetch the dialects' CRDs, once."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from muster.cli.output import Failure, add_json_flag, show

if TYPE_CHECKING:
    from pathlib import Path

    from loadtest.testbed.controlplane.assets import Minor
    from muster.cli.output import Subparsers


def register(commands: Subparsers) -> None:
    """Add the command."""
    command = commands.add_parser("assets", help="build etcd, Kubernetes and a node, fetch CRDs")
    command.add_argument(
        "--kubernetes", metavar="MINOR", help="one minor alone, such as 1.36 (default: all)"
    )
    add_json_flag(command)
    command.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from loadtest.testbed.controlplane import assets, crds  # noqa: PLC0415  lazy

    minors = [kubernetes_minor(arguments.kubernetes)] if arguments.kubernetes else assets.MINORS
    try:
        found = {minor: asdict(assets.ensure(_report, minor)) for minor in minors}
        nodes = {minor: _node(minor) for minor in minors}
        tools = {
            "kustomize": str(assets.ensure_kustomize(_report)),
            "helm": str(assets.ensure_helm(_report)),
            "promtool": str(assets.ensure_promtool(_report)),
            "registry": str(assets.ensure_registry(_report)),
            "kwok": str(assets.ensure_kwok(_report)),
            "volcano_controller_manager": str(assets.ensure_volcano(_report)),
            "crds": str(crds.ensure(_report)),
            **_image(),
        }
    except assets.AssetError as error:
        raise Failure(str(error)) from error
    paths = {m: {n: str(p) for n, p in {**found[m], **nodes[m]}.items()} for m in minors}
    if arguments.json:
        print(json.dumps({**paths, **tools}))
    else:
        for minor, programs in paths.items():
            show(f"Kubernetes {minor}", programs, as_json=False)
        show("tools", tools, as_json=False)
    return 0


def _node(minor: Minor) -> dict[str, Path]:
    """Build the programs of a real node; where it cannot run, print that and build none."""
    from loadtest.testbed.controlplane import nodeassets  # noqa: PLC0415  lazy

    if reason := nodeassets.why_no_runc():
        _report(f"no real node of {minor}, and its tests are skipped: {reason}")
        return {}
    return asdict(nodeassets.ensure(_report, minor))


def _image() -> dict[str, str]:
    """Build the image's lower layers; where there is no apt, print that and build none."""
    from loadtest.release import build, debian  # noqa: PLC0415  lazy

    if reason := debian.why_not():
        _report(f"no image, and its tests are skipped: {reason}")
        return {}
    made = build.parts(_report)
    return {"image_base": str(made.base.path), "image_packages": str(made.packages.path)}


def _report(line: str) -> None:
    print(line, file=sys.stderr)


def kubernetes_minor(text: str) -> Minor:
    """Return one of the minors that can be built; Failure names them all."""
    from loadtest.testbed.controlplane.assets import MINORS  # noqa: PLC0415  lazy

    for minor in MINORS:
        if text.removeprefix("v") == minor:
            return minor
    raise Failure(f"--kubernetes {text}: not one of {', '.join(MINORS)}")


def real_minor(arguments: argparse.Namespace) -> Minor | None:
    """Return the minor of the real control plane that is asked for, None for the simulated one."""
    from loadtest.testbed.controlplane.assets import DEFAULT_MINOR  # noqa: PLC0415  lazy

    if arguments.control_plane == "real":
        return kubernetes_minor(arguments.kubernetes or DEFAULT_MINOR)
    if arguments.kubernetes:
        raise Failure("--kubernetes: only a real control plane has one, add --control-plane real")
    return None
