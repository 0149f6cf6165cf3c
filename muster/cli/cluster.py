"""The flags of commands that talk to the API server, and the identity they use."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from muster.cli.output import Failure

if TYPE_CHECKING:
    from muster.kube.http.auth import Auth

T = TypeVar("T")


def add_cluster_flags(command: argparse.ArgumentParser) -> None:
    """Add --kubeconfig and --context, as kubectl has them."""
    command.add_argument(
        "--kubeconfig", type=Path, help="default: $KUBECONFIG, else ~/.kube/config, else this pod's"
    )
    command.add_argument("--context", help="a context of the kubeconfig (default: its current one)")


def identity(arguments: argparse.Namespace) -> Auth:
    """Return the identity of the command. Raises ``Failure`` when there are no credentials."""
    from muster.kube.http import auth  # noqa: PLC0415  lazy: --help starts without it

    found = _kubeconfig(arguments.kubeconfig)
    if found is None and "KUBERNETES_SERVICE_HOST" not in os.environ:
        raise Failure("no cluster: name one with --kubeconfig FILE or $KUBECONFIG")
    return auth.load(found, context=arguments.context)


def _kubeconfig(given: Path | None) -> Path | None:
    """Return the file to read, None for none; of a list in $KUBECONFIG the first one."""
    if given is not None:
        return given
    if listed := os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]:
        return Path(listed)
    usual = Path.home() / ".kube" / "config"
    return usual if usual.exists() else None


def run_against(arguments: argparse.Namespace, work: Callable[[Auth], Coroutine[Any, Any, T]]) -> T:
    """Run `work` with the identity of the flags. Raises ``Failure`` if the cluster refuses it."""
    from muster.kube.errors import KubeError  # noqa: PLC0415  lazy

    try:
        return asyncio.run(work(identity(arguments)))
    except KubeError as error:
        raise Failure(str(error)) from error
