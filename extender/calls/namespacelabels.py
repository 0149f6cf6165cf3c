"""The labels of the namespace of a called pod, if no watch has shown that namespace yet.

They are not stored. The watch will show the namespace soon; and if it is deleted before that, no
event would remove a stored entry.
"""

from collections.abc import Mapping

from extender.errors import NotReady
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError, NotFound
from muster.kube.resources import NAMESPACES


async def labels_of(client: KubeClient, namespace: str) -> Mapping[str, str]:
    """Read the labels of a namespace; {} if it does not exist. Raises ``NotReady``."""
    try:
        found = await client.get(NAMESPACES, namespace)
    except NotFound:
        return {}
    except KubeError as error:
        raise NotReady(f"muster: namespace {namespace} cannot be read: {error}") from error
    return found.metadata.labels
