"""The API server's proxy to the extender's Service: nothing but a kubeconfig is needed.

::

    kubectl muster ──TLS──► kube-apiserver ──TLS, not verified──► Service ──► the leader
      Authorization: who may use the proxy      Muster-Authorization or Signature: who reads

kube-apiserver removes ``Authorization`` and shows no certificate, so the extender is shown the
user's credential in headers of its own (``muster.apiwire.callersignature``).
"""

from __future__ import annotations

import http
import http.client
from dataclasses import dataclass
from typing import Final

from muster.cli.kubeconfig.context import Cluster
from muster.cli.reach import identity, refusals
from muster.cli.reach.exchange import Answer, SentRequest, with_api_server

#: name:port of the Service, by its port's name; RBAC's resourceNames has the same
SERVICE: Final = "https:muster-extender:https"
RIGHT: Final = f"get services/proxy {SERVICE}"


class NotProxied(Exception):
    """The user may not use the proxy."""


@dataclass(frozen=True, slots=True)
class ServiceProxy:
    """The way through the proxy."""

    cluster: Cluster
    #: Muster's
    namespace: str

    def ask(self, path: str, timeout_s: float, body: bytes | None = None) -> bytes:
        """Return the extender's answer. Raises ``Failure``, or ``NotProxied``."""
        shown = identity.shown(self.cluster.credential, SentRequest(path, {}, body), proxied=True)
        proxied = f"/api/v1/namespaces/{self.namespace}/services/{SERVICE}/proxy{path}"
        try:
            answer = with_api_server(self.cluster, SentRequest(proxied, shown, body), timeout_s)
        except (OSError, http.client.HTTPException) as error:
            raise refusals.no_answer("API server", self.cluster.server, error) from error
        if answer.good:
            return answer.body
        if _is_forbidden(answer):
            raise NotProxied
        raise refusals.of_api_server(self.cluster, self.namespace, answer)


def _is_forbidden(answer: Answer) -> bool:
    """Return whether the API server refused, and not the extender."""
    said = refusals.body_of(answer)
    return answer.status == http.HTTPStatus.FORBIDDEN and said.kind == "Status"
