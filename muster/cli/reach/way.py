"""Which way is taken to the extender, and the flags that choose it.

::

    --extender URL, $MUSTER_EXTENDER ──► direct
    a kubeconfig, or a pod ──► the API server's proxy ──► may not: a port of the leader's pod
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from muster.cli.ask import connection
from muster.cli.output import ExitCode, Failure
from muster.cli.reach.patience import progress

if TYPE_CHECKING:
    from muster.cli.kubeconfig.context import Cluster
    from muster.cli.reach.serviceproxy import ServiceProxy

NAMESPACE: Final = "muster-system"
_AUTO, _PROXY, _FORWARD = "auto", "service-proxy", "port-forward"


class ExtenderWay(Protocol):
    """A way to the extender."""

    def ask(self, path: str, timeout_s: float, body: bytes | None = None) -> bytes:
        """Return the answer to a GET, or to a POST of a ``body``. Raises ``Failure``."""
        ...


def add_flags(command: argparse.ArgumentParser) -> None:
    """Add the flags of the ways."""
    where = command.add_argument_group("the extender, found by the kubeconfig")
    add_cluster_flags(where)
    where.add_argument(
        "--muster-namespace",
        metavar="NAME",
        default=os.environ.get("MUSTER_NAMESPACE") or NAMESPACE,
        help=f"where Muster is installed (default: $MUSTER_NAMESPACE, else {NAMESPACE})",
    )
    where.add_argument(
        "--via",
        choices=(_AUTO, _PROXY, _FORWARD),
        default=os.environ.get("MUSTER_VIA") or _AUTO,
        help="how the API server passes questions on (default: $MUSTER_VIA, else the proxy, and "
        "where that is not allowed port-forward)",
    )
    direct = command.add_argument_group("the extender, named")
    direct.add_argument(
        "--extender",
        metavar="URL",
        default=os.environ.get("MUSTER_EXTENDER") or None,
        help="ask this address, not the kubeconfig's cluster (default: $MUSTER_EXTENDER)",
    )
    connection.add_flags(direct)


def add_cluster_flags(where: argparse._ActionsContainer) -> None:
    """Add --kubeconfig and --context, as kubectl has them."""
    where.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="default: $KUBECONFIG, else ~/.kube/config, else this pod's",
    )
    where.add_argument(
        "--context", metavar="NAME", help="a context of the kubeconfig (default: its current one)"
    )


def ask(
    arguments: argparse.Namespace, path: str, timeout_s: float, body: bytes | None = None
) -> bytes:
    """Return the extender's answer by the way that the flags choose.

    Raises ``Failure`` with the extender's error, or with why it cannot be reached.
    """
    if arguments.extender:
        from muster.cli.reach.direct import Direct  # noqa: PLC0415  lazy

        with progress(f"asking {arguments.extender}"):
            return Direct(arguments).ask(path, timeout_s, body)
    cluster = cluster_of(arguments)
    with progress(f"asking the extender of {cluster.host}"):
        return _by_api_server(arguments, cluster).ask(path, timeout_s, body)


def cluster_of(arguments: argparse.Namespace) -> Cluster:
    """Return the cluster of the flags, read once. Raises ``Failure``."""
    from muster.cli.kubeconfig import context  # noqa: PLC0415  --help starts without it

    found: Cluster | None = getattr(arguments, "cluster", None)
    if found is None:
        found = arguments.cluster = context.find(arguments.kubeconfig, arguments.context)
    return found


def namespace_of(arguments: argparse.Namespace) -> str:
    """Return the namespace to ask about: -n, else that of the context, else default."""
    if arguments.namespace:
        return str(arguments.namespace)
    return "default" if arguments.extender else cluster_of(arguments).namespace


def _by_api_server(arguments: argparse.Namespace, cluster: Cluster) -> ExtenderWay:
    from muster.cli.reach.serviceproxy import ServiceProxy  # noqa: PLC0415  lazy

    proxy = ServiceProxy(cluster, arguments.muster_namespace)
    match arguments.via:
        case "service-proxy":
            return _Either(proxy, None)
        case "port-forward":
            return _forward(arguments, cluster)
        case "auto":
            return _Either(proxy, lambda: _forward(arguments, cluster))
        case other:
            allowed = f"{_AUTO}, {_PROXY}, {_FORWARD}"
            text = f"--via {other} ($MUSTER_VIA): allowed are {allowed}"
            raise Failure(text, code=ExitCode.USAGE)


def _forward(arguments: argparse.Namespace, cluster: Cluster) -> ExtenderWay:
    from muster.cli.reach.portforward import PortForward  # noqa: PLC0415  lazy

    authority = Path(arguments.ca) if arguments.ca else None
    return PortForward(cluster, arguments.muster_namespace, authority)


class _Either:
    """The proxy, and whatever else there is for a user who may not use it."""

    def __init__(self, proxy: ServiceProxy, otherwise: Callable[[], ExtenderWay] | None) -> None:
        self._proxy = proxy
        self._otherwise = otherwise

    def ask(self, path: str, timeout_s: float, body: bytes | None = None) -> bytes:
        from muster.cli.reach import refusals, serviceproxy  # noqa: PLC0415  lazy

        cluster, namespace = self._proxy.cluster, self._proxy.namespace
        try:
            return self._proxy.ask(path, timeout_s, body)
        except serviceproxy.NotProxied:
            if self._otherwise is None:
                raise refusals.not_allowed(cluster, namespace, serviceproxy.RIGHT) from None
        return self._otherwise().ask(path, timeout_s, body)
