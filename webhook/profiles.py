"""Profiles as objects of the cluster: read whole, and the last good state kept of a broken one.

::

    object ──► read ──► good: taken
                  └───► broken: reported; what it said before stays (nothing, the first time)

A profile decides for every accelerator pod of the cluster. A typing error in it must not take
from tomorrow's pods the fabric that today's have.
"""

from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

import msgspec

from injection import catalog
from injection.clusterprofile import ClusterProfile
from injection.errors import ProfileError
from injection.fabric import API_VERSION, Fabric
from kube import wire
from kube.resources import Resource

Profile = TypeVar("Profile")


class ProfileObject(wire.Wire, frozen=True):
    """An object whose ``spec`` is read by ``injection.catalog``, strictly."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")


_GROUP, _, _VERSION = API_VERSION.partition("/")
CLUSTER_PROFILES: Final = Resource(
    _GROUP, _VERSION, "clusterprofiles", ProfileObject, namespaced=False
)
FABRIC_PROFILES: Final = Resource(
    _GROUP, _VERSION, "fabricprofiles", ProfileObject, namespaced=False
)


class _Document(msgspec.Struct, rename="camel"):
    """A profile as it would stand in a file."""

    kind: str
    metadata: dict[str, str]
    spec: msgspec.Raw
    api_version: str = API_VERSION


class Profiles(Generic[Profile]):
    """The profiles of one kind by name. ``problems``: what is wrong, by name of the object."""

    def __init__(self, kind: str, parse: Callable[[bytes, str], Profile]) -> None:
        self.kind = kind
        self._parse = parse
        self._good: dict[str, Profile] = {}
        self.metadata: dict[str, wire.ObjectMeta] = {}
        self.problems: dict[str, str] = {}

    @property
    def good(self) -> Mapping[str, Profile]:
        """Return the last good state of each, by name."""
        return self._good

    def put(self, found: ProfileObject) -> None:
        """Take an object's new state over, or note what is wrong with it."""
        name = found.metadata.name
        self.metadata[name] = found.metadata
        document = _Document(self.kind, {"name": name}, found.spec)
        try:
            self._good[name] = self._parse(msgspec.json.encode(document), f"{self.kind} {name}")
        except ProfileError as error:
            self.problems[name] = str(error)
        else:
            self.problems.pop(name, None)

    def drop(self, meta: wire.ObjectMeta) -> None:
        """Forget an object that is gone."""
        for known in (self._good, self.metadata, self.problems):
            known.pop(meta.name, None)


def cluster_profiles() -> Profiles[ClusterProfile]:
    """Return an empty set of ClusterProfiles."""
    return Profiles("ClusterProfile", catalog.parse_cluster)


def fabric_profiles() -> Profiles[Fabric]:
    """Return an empty set of FabricProfiles."""
    return Profiles("FabricProfile", lambda data, source: catalog.parse(data, source=source))
