"""The flags of commands that talk to the API server, and the identity they use."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from muster.cli.output import ExitCode, Failure
from muster.cli.reach.way import add_cluster_flags

if TYPE_CHECKING:
    from muster.cli.kubeconfig.context import Cluster
    from muster.kube.http.auth import Auth
    from muster.kube.http.credentials import Credentials

__all__ = ["add_cluster_flags", "identity", "run_against"]

T = TypeVar("T")


class _Source:
    """Credentials of a context; read anew when the API server refuses them."""

    def __init__(self, read: Callable[[], Cluster], first: Cluster) -> None:
        self._read = read
        self._first: Cluster | None = first

    def load(self) -> Credentials:
        """See ``CredentialSource``."""
        from muster.kube.http.credentials import Credentials  # noqa: PLC0415  lazy

        cluster = self._first or self._read()
        self._first = None
        token = cluster.credential.token
        return Credentials(
            server=cluster.server,
            tls=cluster.tls() if cluster.server.startswith("https://") else None,
            authorization=f"Bearer {token}" if token else "",
            server_hostname=cluster.server_name or None,
            proxy=cluster.proxy or None,
        )

    def authorization(self) -> str:
        """See ``CredentialSource``."""
        return self.load().authorization


def identity(arguments: argparse.Namespace) -> Auth:
    """Return the identity of the command. Raises ``Failure`` when there are no credentials."""
    from muster.cli.kubeconfig import context  # noqa: PLC0415  lazy: --help starts without it
    from muster.kube.http.auth import Auth  # noqa: PLC0415  lazy

    def read() -> Cluster:
        return context.find(arguments.kubeconfig, arguments.context)

    return Auth(_Source(read, read()))


def run_against(arguments: argparse.Namespace, work: Callable[[Auth], Coroutine[Any, Any, T]]) -> T:
    """Run `work` with the identity of the flags. Raises ``Failure`` if the cluster refuses it."""
    from muster.kube.errors import Forbidden, KubeError, TransportError, Unauthorized  # noqa: PLC0415

    try:
        return asyncio.run(work(identity(arguments)))
    except (Forbidden, Unauthorized) as error:
        raise Failure(str(error), code=ExitCode.DENIED) from error
    except TransportError as error:
        raise Failure(str(error), code=ExitCode.UNREACHED) from error
    except KubeError as error:
        raise Failure(str(error)) from error
