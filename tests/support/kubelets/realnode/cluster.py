"""A control plane that real nodes can join, and whether this machine can have them at all."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from support.kubelets.realnode import cgroups
from support.kubelets.realnode.node import RealNode, real_node
from support.kubelets.realnode.sandbox import Sandbox
from support.kubelets.realnode.settings import NodeOptions

from loadtest.testbed.controlplane import nodeassets, schedulerconfig
from loadtest.testbed.controlplane.assets import DEFAULT_MINOR, Minor
from loadtest.testbed.controlplane.controlplane import SCHEDULER, ControlPlane, Options
from loadtest.testbed.controlplane.programs import ProgramFailed

_NEEDED: Final = ("unshare", "nsenter", "mount", "umount", "ip", "env")


def plane_options(minor: Minor = DEFAULT_MINOR, **more: Any) -> Options:
    """Return options of a control plane that real nodes can join: it listens beyond loopback.

    `more` are fields of Options; api_server_flags are added to those that are needed here.
    """
    if more.get("service_accounts"):
        # To the endpoints of a webhook's Service: this side knows no Service address.
        more["api_server_flags"] = (
            "--enable-aggregator-routing=true",
            *more.get("api_server_flags", ()),
        )
    flags = (
        "--authorization-mode=Node",  # beside RBAC: kubelets are who they are
        "--kubelet-preferred-address-types=InternalIP",  # the nodes' names cannot be resolved
        *more.pop("api_server_flags", ()),
    )
    return Options(minor=minor, bind_address="0.0.0.0", api_server_flags=flags, **more)  # noqa: S104 - nodes have networks of their own


async def start_scheduler(plane: ControlPlane) -> None:
    """Start kube-scheduler as it is, without an extender."""
    config = schedulerconfig.write(
        "bare", directory=plane.directory, kubeconfig=plane.kubeconfig(SCHEDULER)
    )
    await plane.start_scheduler(config)


@asynccontextmanager
async def real_cluster(
    minor: Minor = DEFAULT_MINOR, options: NodeOptions | None = None, **more: Any
) -> AsyncIterator[RealNode]:
    """Yield a node on a control plane of its own with kube-scheduler; skips where it can't be.

    `more` goes to `plane_options`; the control plane is ``node.plane``.
    """
    await skip_unless_possible()
    async with ControlPlane(plane_options(minor, **more)) as plane:
        await start_scheduler(plane)
        async with real_node(plane, options) as node:
            yield node


async def skip_unless_possible() -> None:
    """Skip the test where this machine can have no real node."""
    if reason := await why_not():
        pytest.skip(reason)


async def why_not() -> str:
    """Return why no node can be made here, "" where it can; tried, not guessed."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a real node needs Linux and root"
    if missing := [name for name in _NEEDED if shutil.which(name) is None]:
        return f"a real node needs {', '.join(missing)} (Debian: util-linux, iproute2)"
    if not any(found.controllers == "memory" for found in cgroups.hierarchies()):
        return "a real node is made on cgroup v1 here; this machine has its controllers in v2"
    if reason := await asyncio.to_thread(nodeassets.why_no_runc):
        return reason
    try:
        async with Sandbox():
            return ""
    except (AssertionError, OSError, ProgramFailed) as error:
        return f"namespaces or control groups cannot be made here: {error}"
