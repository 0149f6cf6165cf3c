"""One request and its answer, over a connection that is closed afterwards."""

from __future__ import annotations

import http.client
import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from muster.cli.kubeconfig.context import Cluster
from muster.cli.output import ExitCode, Failure

_AGENT: Final = "kubectl-muster"


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request."""

    path: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: JSON to POST, None for a GET
    body: bytes | None = None

    @property
    def method(self) -> str:
        """GET or POST."""
        return "GET" if self.body is None else "POST"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with any status."""

    status: int
    body: bytes

    @property
    def good(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300  # noqa: PLR2004  2xx


def with_api_server(cluster: Cluster, asked: SentRequest, timeout_s: float) -> Answer:
    """Return the API server's answer.

    Raises ``OSError`` or ``http.client.HTTPException`` if there is none, ``Failure`` for a
    kubeconfig that cannot be used.
    """
    credential = cluster.credential
    headers = {**asked.headers}
    if credential.token and not (cluster.server.startswith("https://") or is_here(cluster.server)):
        text = f"{cluster.source}: server {cluster.server}: a token is not sent in the clear"
        raise Failure(f"{text}; use https://", code=ExitCode.USAGE)
    if credential.token:
        headers["Authorization"] = f"Bearer {credential.token}"
    base = urlsplit(cluster.server).path
    connection = _connection(cluster, timeout_s)
    return over(connection, SentRequest(f"{base}{asked.path}", headers, asked.body))


def is_here(url: str) -> bool:
    """Return whether a URL is of this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def over(connection: http.client.HTTPConnection, asked: SentRequest) -> Answer:
    """Return the answer over an open or a new connection, and close it. Raises as above."""
    headers = {"User-Agent": _AGENT, "Accept": "application/json", **asked.headers}
    if asked.body is not None:
        headers["Content-Type"] = "application/json"
    try:
        connection.request(asked.method, asked.path, asked.body, headers)
        reply = connection.getresponse()
        return Answer(reply.status, reply.read())
    finally:
        connection.close()


def _connection(cluster: Cluster, timeout_s: float) -> http.client.HTTPConnection:
    parts = urlsplit(cluster.server)
    host = parts.hostname or ""
    plain = parts.scheme == "http"
    port = parts.port or (80 if plain else 443)
    proxy = cluster.proxy or _proxy_of(parts.scheme, host)
    near, at = (host, port) if not proxy else _proxy(proxy, cluster.source)
    if plain:
        connection = http.client.HTTPConnection(near, at, timeout=timeout_s)
    else:
        name = cluster.server_name or host
        connection = _Https(near, at, timeout_s, cluster.tls(), name)
    if proxy:
        connection.set_tunnel(host, port)
    return connection


class _Https(http.client.HTTPSConnection):
    """A connection whose certificate may have another name than the host, and come by a proxy."""

    def __init__(
        self, host: str, port: int, timeout_s: float, tls: ssl.SSLContext, name: str
    ) -> None:
        super().__init__(host, port, timeout=timeout_s, context=tls)
        self._tls = tls
        self._name = name

    def connect(self) -> None:
        """Connect, and check the certificate for ``name``."""
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


def _proxy(url: str, source: str) -> tuple[str, int]:
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        text = f"{source}: proxy-url: {url!r}: allowed is http://HOST:PORT"
        raise Failure(text, code=ExitCode.USAGE)
    return parts.hostname, parts.port or 80


def _proxy_of(scheme: str, host: str) -> str:
    """Return the proxy that the environment names for a host, as kubectl does; "" for none."""
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415  lazy

    return "" if proxy_bypass(host) else getproxies().get(scheme, "")
