"""Profiles as objects of the cluster: read whole, and the last good state kept of a broken one.

::

    object ──► read ──► good: taken
                  └───► broken: reported; what it said before stays (nothing, the first time)

A profile decides for every accelerator pod of the cluster. A typing error in it must not take
from tomorrow's pods the fabric that today's have. For the same reason a fabric that is deleted
stays known as long as the ClusterProfile in force names it.

The ClusterProfile in force is the one called like this cluster, or the only one there is.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import msgspec

from muster.injection.errors import ProfileError
from muster.injection.profiles import catalog
from muster.injection.profiles.clusterprofile import ClusterProfile
from muster.injection.profiles.fabric import API_VERSION, FabricProfile, Fabrics, Name
from muster.kube import wire
from muster.kube.resources import Resource

Profile = TypeVar("Profile")


class Condition(wire.Wire, frozen=True):
    """meta/v1 Condition."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""


class ProfileStatus(wire.Wire, frozen=True):
    """What was said of a profile before, by this replica or another."""

    conditions: tuple[Condition, ...] = ()


class ProfileObject(wire.Wire, frozen=True):
    """An object whose ``spec`` is read by ``muster.injection.profiles.catalog``, strictly."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: ProfileStatus = ProfileStatus()


_GROUP, _, _VERSION = API_VERSION.partition("/")
CLUSTER_PROFILES: Final = Resource(
    _GROUP, _VERSION, "clusterprofiles", ProfileObject, namespaced=False
)
FABRIC_PROFILES: Final = Resource(
    _GROUP, _VERSION, "fabricprofiles", ProfileObject, namespaced=False
)
RESOURCE_OF: Final = {"ClusterProfile": CLUSTER_PROFILES, "FabricProfile": FABRIC_PROFILES}
_KEPT: Final = "what was in force before stays in force"


class _Document(msgspec.Struct, rename="camel"):
    """A profile as it would stand in a file."""

    kind: str
    metadata: dict[str, str]
    spec: msgspec.Raw
    api_version: str = API_VERSION


@dataclass(frozen=True, slots=True)
class ProfileState:
    """How one profile fares. ``said``: the conditions that its status has now.

    ``reason``: a word of a closed set; ``message``: for people. ``broken``: it must be mended.
    """

    kind: str
    meta: wire.ObjectMeta
    said: tuple[Condition, ...]
    reason: str
    message: str
    ready: bool = True
    broken: bool = False


class Profiles(Generic[Profile]):
    """The profiles of one kind by name. ``problems``: what is wrong, by name of the object."""

    def __init__(self, kind: str, parse: Callable[[bytes, str], Profile]) -> None:
        self.kind = kind
        self._parse = parse
        self._good: dict[str, Profile] = {}
        self.objects: dict[str, ProfileObject] = {}
        self.problems: dict[str, str] = {}

    @property
    def good(self) -> Mapping[str, Profile]:
        """Return the last good state of each, by name."""
        return self._good

    def put(self, found: ProfileObject) -> None:
        """Take an object's new state over, or note what is wrong with it."""
        name = found.metadata.name
        self.objects[name] = found
        document = _Document(self.kind, {"name": name}, found.spec)
        try:
            self._good[name] = self._parse(msgspec.json.encode(document), f"{self.kind} {name}")
        except ProfileError as error:
            self.problems[name] = str(error)
        else:
            self.problems.pop(name, None)

    def drop(self, meta: wire.ObjectMeta) -> None:
        """Forget an object that is gone."""
        for known in (self._good, self.objects, self.problems):
            known.pop(meta.name, None)

    def broken(self, name: str, problem: str, *, kept: bool) -> ProfileState:
        """Return the state of a profile that cannot be used; ``kept``: an earlier one is."""
        text = f"{problem}; {_KEPT}" if kept else problem
        found = self.objects[name]
        return ProfileState(
            self.kind,
            found.metadata,
            found.status.conditions,
            "Invalid",
            text,
            ready=False,
            broken=True,
        )

    def fine(self, name: str, reason: str, message: str, *, ready: bool = True) -> ProfileState:
        """Return the state of a profile with which nothing is wrong."""
        found = self.objects[name]
        said = found.status.conditions
        return ProfileState(self.kind, found.metadata, said, reason, message, ready=ready)


def cluster_profiles() -> Profiles[ClusterProfile]:
    """Return an empty set of ClusterProfiles."""
    return Profiles("ClusterProfile", catalog.parse_cluster)


def fabric_profiles() -> Profiles[FabricProfile]:
    """Return an empty set of FabricProfiles."""
    return Profiles("FabricProfile", lambda data, source: catalog.parse(data, source=source))


@dataclass(slots=True)
class InForce:
    """Both kinds, and what of them is in force. ``cluster``: name of this cluster.

    ``shipped``: fabrics of Muster's own and of files; an object of the same name goes before.
    """

    cluster: str
    shipped: Fabrics
    clusters: Profiles[ClusterProfile] = field(default_factory=cluster_profiles)
    own: Profiles[FabricProfile] = field(default_factory=fabric_profiles)
    profile: ClusterProfile | None = None
    fabrics: Fabrics = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    def choose(self) -> None:
        """Put in force what the objects say now, as far as it can be used."""
        fabrics = {**self.shipped, **self.own.good}
        name = self._name()
        wanted = self.clusters.good.get(name)
        self.unknown = ()
        if not self.clusters.objects:
            self.profile = None
        elif wanted is not None:
            self.unknown = tuple(catalog.unknown_fabrics(wanted, fabrics))
            self.profile = self.profile if self.unknown else wanted
        self.fabrics = {**self._still_named(fabrics), **fabrics}

    def chosen(self) -> ClusterProfile:
        """Return the profile in force, an empty one where there is none."""
        return self.profile or ClusterProfile(metadata=Name(name=self.cluster))

    def states(self) -> Iterator[ProfileState]:
        """Yield how each profile fares."""
        name = self._name()
        for each in self.clusters.objects:
            yield self._cluster_state(each, name)
        for each in self.own.objects:
            problem = self.own.problems.get(each)
            yield (
                self.own.fine(each, "Usable", "ClusterProfiles and pods may name it")
                if problem is None
                else self.own.broken(each, problem, kept=each in self.own.good)
            )

    def _name(self) -> str:
        """Return the name of the ClusterProfile that counts, "" where none does."""
        names = self.clusters.objects
        if self.cluster in names:
            return self.cluster
        return next(iter(names)) if len(names) == 1 else ""

    def _still_named(self, fabrics: Fabrics) -> Fabrics:
        """Return the fabrics that are gone and that the profile in force names."""
        named = () if self.profile is None else self.profile.spec.fabrics
        gone = {choice.profile for choice in named}.difference(fabrics)
        return {name: self.fabrics[name] for name in gone if name in self.fabrics}

    def _cluster_state(self, each: str, counts: str) -> ProfileState:
        problem, kept = self.clusters.problems.get(each), self.profile is not None
        if problem is not None:
            return self.clusters.broken(each, problem, kept=kept)
        if not counts:
            text = (
                f"none of the {len(self.clusters.objects)} ClusterProfiles is called "
                f"{self.cluster}: give one that name, or name one of them in the webhook's "
                "configuration, field cluster"
            )
            return self.clusters.broken(each, text, kept=kept)
        if each != counts:
            text = f"pods here get what ClusterProfile {counts} says: this cluster is called so"
            return self.clusters.fine(each, "NotThisCluster", text, ready=False)
        if self.unknown:
            return self.clusters.broken(each, "; ".join(self.unknown), kept=kept)
        return self.clusters.fine(each, "InForce", "pods of this cluster get what it says")
