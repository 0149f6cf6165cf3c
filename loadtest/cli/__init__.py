"""The commands of `muster` that need the source tree: demo, loadtest, bench, assets, release.

``demo``        `muster demo`: gangs on an embedded fleet
``loadtest``    `muster loadtest`: the four phases
``loadfleet``   its options that choose the fleet, or a trace instead of the phases
``besidebare``  its options that measure beside a bare kube-scheduler
``assets``      `muster assets`: builds the real control plane
``releases``    `muster release`: builds the files of a release
``bench/``      `muster bench …`: one file per benchmark with many options

`muster.cli.sourcetree` finds this package where it is beside muster and calls ``register``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadtest.cli import assets, demo, loadtest, releases
from loadtest.cli.bench import app

if TYPE_CHECKING:
    from muster.cli.output import Subparsers


def register(commands: Subparsers) -> None:
    """Add the commands."""
    for command in (demo, loadtest, app, assets, releases):
        command.register(commands)
