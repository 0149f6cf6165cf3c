"""Pods that are being deleted and do not go, with what keeps them."""

from typing import Final

from muster.kube import wire
from muster.kube.client import KubeClient
from muster.kube.resources import Resource


class Keepers(wire.ObjectMeta, frozen=True):
    """The metadata of a pod, with what keeps it."""

    finalizers: tuple[str, ...] = ()


class HangingPod(wire.Wire, frozen=True):
    """A pod that is being deleted."""

    metadata: Keepers = Keepers()

    @property
    def text(self) -> str:
        """Its name with its finalizers."""
        kept = ", ".join(self.metadata.finalizers)
        return f"{self.metadata.name} (finalizers {kept})" if kept else self.metadata.name


_PODS: Final = Resource("", "v1", "pods", HangingPod)


async def hanging(client: KubeClient, namespace: str, name: str) -> HangingPod:
    """Read a pod. Raises ``KubeError``."""
    return await client.get(_PODS, name, namespace=namespace)
