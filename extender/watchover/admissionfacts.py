"""What the webhook adds to pods in this cluster, as far as the extender must know it.

Files are read once, at the start. Objects are listed when a pod has slipped past the webhook. That
is rare, so they are not watched. An invalid object is logged and changes nothing.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from extender.config.settings import Admission
from muster.injection.errors import ProfileError
from muster.injection.profiles import catalog, fabriccheck, tiers
from muster.injection.profiles.clusterprofile import ClusterProfile, ClusterProfileSpec
from muster.injection.profiles.fabric import API_VERSION, FabricProfile, Fabrics, FabricSpec, Name
from muster.injection.subject import Facts
from muster.kube import wire
from muster.kube.client import KubeClient
from muster.kube.errors import NotFound
from muster.kube.resources import Resource
from muster.observability.configfile import ConfigError
from muster.workloads.devices.accelerators import Accelerators

log = logging.getLogger(__name__)


class ClusterObject(wire.Wire, frozen=True):
    """A ClusterProfile as an object of the cluster."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: ClusterProfileSpec = ClusterProfileSpec()


class FabricObject(wire.Wire, frozen=True):
    """A FabricProfile as an object of the cluster."""

    spec: FabricSpec
    metadata: wire.ObjectMeta = wire.ObjectMeta()


_GROUP, _, _VERSION = API_VERSION.partition("/")
CLUSTERS: Final = Resource(_GROUP, _VERSION, "clusterprofiles", ClusterObject, namespaced=False)
FABRICS: Final = Resource(_GROUP, _VERSION, "fabricprofiles", FabricObject, namespaced=False)


class AdmissionFacts:
    """The facts by which the webhook chooses what it adds to a pod."""

    def __init__(
        self,
        config: Admission,
        cluster: str,
        accelerators: Accelerators,
        namespaces: Mapping[str, Mapping[str, str]],
    ) -> None:
        """Read the files; raises ``ConfigError``. ``cluster``: name of the cluster's profile.

        ``namespaces``: labels by name; other parts update them.
        """
        self._cluster = cluster
        self._accelerators = accelerators
        self._namespaces = namespaces
        self._files = [Path(file) for file in config.fabrics]
        self._known: Fabrics | None = None
        self._fixed = config.cluster_profile is not None or not config.injects
        #: None if the webhook adds nothing in this cluster, or if it is unknown what it adds
        self.facts: Facts | None = None
        if config.cluster_profile is not None and config.injects:
            try:
                self._read(Path(config.cluster_profile))
            except (ProfileError, OSError) as error:
                raise ConfigError(f"admission: {error}") from error

    async def look(self, client: KubeClient) -> None:
        """List the objects, unless a file is configured; raises ``KubeError``."""
        if self._fixed:
            return
        try:
            clusters = await client.list(CLUSTERS)
            fabrics = await client.list(FABRICS) if clusters else ()
        except NotFound:  # the kinds are not installed
            self.facts = None
            return
        found = _own(clusters, self._cluster)
        try:
            self.facts = None if found is None else self._of(found, fabrics)
        except (ProfileError, OSError) as error:
            log.warning("profile invalid", extra={"problem": str(error)})

    def _read(self, path: Path) -> None:
        self.facts = self._usable(catalog.parse_cluster(path.read_bytes(), str(path)), {})

    def _of(self, found: ClusterObject, fabrics: Iterable[FabricObject]) -> Facts:
        made = (
            FabricProfile(API_VERSION, "FabricProfile", Name(f.metadata.name), f.spec)
            for f in fabrics
        )
        own = {fabric.name: fabric for fabric in made if not list(fabriccheck.problems(fabric))}
        profile = ClusterProfile(metadata=Name(found.metadata.name), spec=found.spec)
        return self._usable(profile, own)

    def _usable(self, profile: ClusterProfile, own: Fabrics) -> Facts:
        """Return the facts; raises ``ProfileError`` for unknown fabrics."""
        if self._known is None:
            files = (catalog.parse(file.read_bytes(), source=str(file)) for file in self._files)
            self._known = {**catalog.load(), **{fabric.name: fabric for fabric in files}}
        fabrics = {**self._known, **own}
        if problems := catalog.unknown_fabrics(profile, fabrics):
            raise ProfileError("\n".join(problems))
        places = tiers.load()
        return Facts(profile, fabrics, self._accelerators, places, namespaces=self._namespaces)


def _own(clusters: Sequence[ClusterObject], name: str) -> ClusterObject | None:
    """Return the profile with the name of this cluster, or the only one if there is only one."""
    named = [found for found in clusters if found.metadata.name == name]
    if named:
        return named[0]
    return clusters[0] if len(clusters) == 1 else None
