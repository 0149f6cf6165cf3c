"""The labels of a namespace that kube-scheduler's pod is in and that no watch has shown yet.

Not kept: the watch will tell, and of a namespace that is gone meanwhile nobody else would.
"""

from collections.abc import Mapping

from extender.errors import NotReady
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError, NotFound
from muster.kube.resources import NAMESPACES


async def labels_of(client: KubeClient, namespace: str) -> Mapping[str, str]:
    """Read the labels of a namespace, none of one that is not there; raises ``NotReady``."""
    try:
        found = await client.get(NAMESPACES, namespace)
    except NotFound:
        return {}
    except KubeError as error:
        raise NotReady(f"muster: namespace {namespace} cannot be read: {error}") from error
    return found.metadata.labels
