"""The resources Muster reads and writes, and where they live."""

from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar
from urllib.parse import quote

from muster.kube import wire
from muster.kube.wirestorage import CsiNode, PersistentVolume, PersistentVolumeClaim


class Meta(Protocol):
    """What identifies any object."""

    @property
    def namespace(self) -> str:
        """Return its namespace, "" for an object without one."""
        ...

    @property
    def name(self) -> str:
        """Return its name."""
        ...

    @property
    def uid(self) -> str:
        """Return its UID."""
        ...

    @property
    def resource_version(self) -> str:
        """Return its version."""
        ...


class KubeObject(Protocol):
    """Any wire struct of an API object."""

    @property
    def metadata(self) -> Meta:
        """Return its metadata."""
        ...


T = TypeVar("T", bound=KubeObject)


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """One resource type."""

    #: "" for the core group.
    group: str
    version: str
    plural: str
    #: The wire struct that its objects are decoded to.
    type: type[T]
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return ``group/version``, or the bare version of the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """Return the URL path of the group's version, where the server lists its resources."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, name: str = "", *, namespace: str | None = None, subresource: str = "") -> str:
        """Return the URL path of the collection, of one object, or of its subresource.

        Raises ``ValueError`` for a name without a namespace where one is needed.
        """
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self} {name!r}: a namespace is needed, the resource is namespaced")
        parts = [self.root]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


PODS: Final = Resource("", "v1", "pods", wire.Pod)
NODES: Final = Resource("", "v1", "nodes", wire.Node, namespaced=False)
NAMESPACES: Final = Resource("", "v1", "namespaces", wire.Namespace, namespaced=False)
CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", PersistentVolumeClaim)
VOLUMES: Final = Resource("", "v1", "persistentvolumes", PersistentVolume, namespaced=False)
CSI_NODES: Final = Resource("storage.k8s.io", "v1", "csinodes", CsiNode, namespaced=False)
