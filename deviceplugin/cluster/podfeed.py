"""Where the plugin follows the pods of its node: at the API server, or at the extender.

::

    pods.extender is empty   API server   RBAC: list and watch pods, which means those of all nodes
    pods.extender is a URL   extender     its token must name this node; no right on pods is needed

Both answer alike (``muster.apiwire.nodepods``), so the watch is the same. The extender shows what a
plugin needs of a pod, and of the pods of this node alone.
"""

import logging
from dataclasses import dataclass

from deviceplugin.config import PodFeedSettings
from muster.apiwire import nodepods
from muster.kube import wire
from muster.kube.client import KubeClient
from muster.kube.errors import AuthError
from muster.kube.http.auth import Auth
from muster.kube.http.credentials import Credentials, tls_context
from muster.kube.resources import PODS, Resource
from muster.kube.watching.listwatch import ListWatch, WatchConsumer, WatchScope

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PodsOfNode(Resource[wire.Pod]):
    """Pods, at the extender's path for one node."""

    node: str = ""

    def path(self, name: str = "", *, namespace: str | None = None, subresource: str = "") -> str:
        """Return the path of the collection, the only one that there is."""
        del name, namespace, subresource
        return nodepods.path(self.node)


@dataclass(frozen=True, slots=True)
class ExtenderCredentials:
    """A ``CredentialSource``: the extender's address, and the token in a file."""

    settings: PodFeedSettings

    def load(self) -> Credentials:
        """See ``CredentialSource``."""
        tls = tls_context(self.settings.ca_file)
        return Credentials(self.settings.extender.rstrip("/"), tls, self.authorization())

    def authorization(self) -> str:
        """Read the token again: the kubelet renews it. Raises ``AuthError``."""
        file = self.settings.token_file
        try:
            return f"Bearer {file.read_text(encoding='utf-8').strip()}"
        except (OSError, ValueError) as error:
            raise AuthError(f"pods.tokenFile: {file}: {error}; mount the pod's token") from error


def client_for(settings: PodFeedSettings) -> KubeClient | None:
    """Return a client of the extender, None where the API server is asked."""
    return KubeClient(Auth(ExtenderCredentials(settings))) if settings.extender else None


def feed(client: KubeClient, node: str, extender: KubeClient | None) -> ListWatch[wire.Pod]:
    """Return the watch of a node's pods."""
    consumer = WatchConsumer(on_problem=lambda text: log.warning("pods", extra={"problem": text}))
    if extender is not None:
        pods = PodsOfNode("", "v1", PODS.plural, wire.Pod, node=node)
        return ListWatch(extender, pods, consumer=consumer)
    scope: WatchScope[wire.Pod] = WatchScope(selectors={"fieldSelector": f"spec.nodeName={node}"})
    return ListWatch(client, PODS, scope=scope, consumer=consumer)
