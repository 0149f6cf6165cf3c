"""`muster extender …`, `webhook …`, `device-plugin …` and `vni-agent …`: start that program.

The command line never imports the shells; it replaces itself by `python -m extender`, so signals
and exit codes are the program's own.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_SHELLS = {  # command: its module, and what it is for
    "extender": ("extender", "plan gangs and answer kube-scheduler's calls"),
    "webhook": ("webhook", "gate and validate pods on admission"),
    "device-plugin": ("deviceplugin", "give a node's GPUs and RDMA NICs to pods, by the kubelet"),
    "vni-agent": ("muster.vniagent", "make the devices of jobs' isolated networks on this node"),
}


def register(commands: Subparsers) -> None:
    """Add these commands; the program itself parses their arguments."""
    for name, (module, purpose) in _SHELLS.items():
        command = commands.add_parser(name, help=purpose, add_help=False, prefix_chars="\0")
        command.add_argument("arguments", nargs="*")
        command.set_defaults(run=_exec, module=module)


def _exec(arguments: argparse.Namespace) -> int:
    command = [sys.executable, "-m", arguments.module, *arguments.arguments]
    os.execv(sys.executable, command)  # noqa: S606  no shell is wanted: the arguments are words
