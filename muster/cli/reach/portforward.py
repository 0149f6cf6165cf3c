"""A port of the leader's pod: TLS from here to the extender, past the API server and the kubelet.

Needed where the service proxy is not allowed, or where nobody between here and the extender may see
a token (docs/adr/0053). The extender's certificate is checked: its authority is in the ConfigMap
``muster-extender-ca`` of Muster's namespace, or named with --ca.
"""

from __future__ import annotations

import http
import http.client
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import aiohttp
import msgspec

from muster.cli.kubeconfig.context import Cluster
from muster.cli.output import ExitCode, Failure
from muster.cli.reach import identity, refusals
from muster.cli.reach.exchange import SentRequest, over, with_api_server
from muster.cli.reach.serviceproxy import RIGHT
from muster.cli.reach.tunnel import TunnelRefused, tunnel
from muster.kube.names import LEADER

AUTHORITY: Final = "muster-extender-ca"
_KEY: Final = "ca.crt"
_PORT_NAME: Final = "https"
_PORT: Final = 8443  # of the shipped Deployment
_RIGHTS: Final = f"{RIGHT}, nor create pods/portforward"

T = TypeVar("T")


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _Port(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    container_port: int = 0


class _Container(msgspec.Struct, frozen=True):
    ports: tuple[_Port, ...] = ()


class _Spec(msgspec.Struct, frozen=True):
    containers: tuple[_Container, ...] = ()


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()


class _Pods(msgspec.Struct, frozen=True):
    items: tuple[_Pod, ...] = ()


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class PortForward:
    """The way to the leader's pod."""

    cluster: Cluster
    #: Muster's
    namespace: str
    #: PEM of who may have signed the extender's certificate, None: read from the cluster
    authority: Path | None = None

    def ask(self, path: str, timeout_s: float, body: bytes | None = None) -> bytes:
        """Return the extender's answer. Raises ``Failure``."""
        pod, port = self._leader(timeout_s)
        context = self._context(timeout_s)
        asked = SentRequest(path, {}, body)
        shown = identity.shown(self.cluster.credential, asked, proxied=False)
        name = f"muster-extender.{self.namespace}.svc"
        what = f"port-forward to pod {self.namespace}/{pod} of"
        try:
            with tunnel(self.cluster, self.namespace, pod, port) as ends:
                ends.near.settimeout(timeout_s)
                try:
                    connection = http.client.HTTPConnection(name)
                    connection.sock = context.wrap_socket(ends.near, server_hostname=name)
                    answer = over(connection, SentRequest(path, shown, body))
                except (OSError, http.client.HTTPException) as error:
                    if ends.trouble:
                        text = f"{what} {self.cluster.host}: the node says: {ends.trouble}"
                        raise Failure(text, code=ExitCode.UNREACHED) from error
                    raise
        except TunnelRefused as refused:
            raise self._refused(what, refused) from refused
        except aiohttp.ClientError as error:
            raise refusals.no_answer(what, self.cluster.host, error) from error
        except (OSError, http.client.HTTPException) as error:
            raise refusals.no_answer(what, self.cluster.host, error) from error
        if answer.good:
            return answer.body
        said = refusals.body_of(answer).error or f"{what} {self.cluster.host}: {answer.status}"
        raise refusals.of_extender(said, answer.status)

    def _leader(self, timeout_s: float) -> tuple[str, int]:
        """Return the leader's pod and its port. Raises ``Failure``."""
        path = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector={LEADER}%3Dmuster-extender"
        pods = self._read(path, _Pods, timeout_s).items
        if not pods:
            text = (
                f"no extender leads: no pod in namespace {self.namespace} of {self.cluster.host} "
                f"has the label {LEADER}=muster-extender; look at it with: kubectl -n "
                f"{self.namespace} get pods,lease"
            )
            raise Failure(text, code=ExitCode.UNREACHED)
        ports = [port for each in pods[0].spec.containers for port in each.ports]
        named = [port.container_port for port in ports if port.name == _PORT_NAME]
        return pods[0].metadata.name, named[0] if named else _PORT

    def _context(self, timeout_s: float) -> ssl.SSLContext:
        """Return what checks the extender's certificate. Raises ``Failure``."""
        if self.authority is not None:
            where, pem = f"--ca {self.authority}", self._file(self.authority)
        else:
            path = f"/api/v1/namespaces/{self.namespace}/configmaps/{AUTHORITY}"
            where = f"ConfigMap {self.namespace}/{AUTHORITY} {_KEY}"
            pem = self._read(path, _ConfigMap, timeout_s).data.get(_KEY, "")
        try:
            return ssl.create_default_context(cadata=pem)
        except (ssl.SSLError, ValueError) as error:
            text = f"{where}: holds no certificate; name the extender's authority with --ca FILE"
            raise Failure(text, code=ExitCode.USAGE) from error

    @staticmethod
    def _file(path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise Failure(f"--ca {path}: {error.strerror}", code=ExitCode.USAGE) from error

    def _read(self, path: str, kind: type[T], timeout_s: float) -> T:
        """Return an object of the API server. Raises ``Failure``."""
        try:
            answer = with_api_server(self.cluster, SentRequest(path), timeout_s)
        except (OSError, http.client.HTTPException) as error:
            raise refusals.no_answer("API server", self.cluster.server, error) from error
        if answer.good:
            return msgspec.json.decode(answer.body, type=kind)
        if answer.status == http.HTTPStatus.FORBIDDEN:
            raise refusals.not_allowed(self.cluster, self.namespace, _RIGHTS)
        if answer.status == http.HTTPStatus.NOT_FOUND and path.endswith(AUTHORITY):
            text = (
                f"ConfigMap {self.namespace}/{AUTHORITY} is missing: nothing says who signs the "
                "extender's certificate; name the authority with --ca FILE"
            )
            raise Failure(text, code=ExitCode.UNREACHED)
        raise refusals.of_api_server(self.cluster, self.namespace, answer)

    def _refused(self, what: str, refused: TunnelRefused) -> Failure:
        if refused.status == http.HTTPStatus.FORBIDDEN:
            return refusals.not_allowed(self.cluster, self.namespace, _RIGHTS)
        text = f"{what} {self.cluster.host}: {refused.status} {refused}"
        return Failure(text, code=ExitCode.UNREACHED)
