"""The constraints that a pod's volumes put on where it may run.

kube-scheduler checks them in four plugins; this index covers what can be decided
from the objects alone:

* a bound claim's volume has node affinity (VolumeBinding) and perhaps zone and region
  labels (VolumeZone): both become ORed node terms, one list per volume and label;
* everything that depends on other pods, or on what a provisioner will do, is listed as
  unmodelled: claims that are missing or not bound yet (WaitForFirstConsumer among them),
  ReadWriteOncePod (VolumeRestrictions), drivers with an attach limit on some node
  (NodeVolumeLimits), generic ephemeral volumes, and disks named in the pod itself.

The index stores a few words per claim and volume, never the objects.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final, Protocol

from muster.cluster.specs.podconstraints import NodeTerm, Operator, Requirement
from muster.kube import wire, wirestorage
from muster.kube.translation.selectors import UnknownOperator, node_terms

CLAIM_MISSING: Final = "volume claim that does not exist"
CLAIM_UNBOUND: Final = "volume claim that is not bound yet"
CLAIM_EXCLUSIVE: Final = "ReadWriteOncePod volume claim"
ATTACH_LIMIT: Final = "CSI driver with an attach limit"
EPHEMERAL: Final = "generic ephemeral volume"
INLINE_DISK: Final = "disk that only one pod may write to"
VOLUME_OPERATOR: Final = "volume node affinity with an unknown operator"

_BIND_COMPLETED: Final = (
    "pv.kubernetes.io/bind-completed"  # upstream: storage/volume AnnBindCompleted
)
_ZONE_SEPARATOR: Final = "__"  # a volume's zone label may list several zones
_GA_ZONE: Final = "topology.kubernetes.io/zone"
_GA_REGION: Final = "topology.kubernetes.io/region"
_TO_GA: Final = {
    "failure-domain.beta.kubernetes.io/zone": _GA_ZONE,
    "failure-domain.beta.kubernetes.io/region": _GA_REGION,
    _GA_ZONE: _GA_ZONE,
    _GA_REGION: _GA_REGION,
}

Terms = tuple[NodeTerm, ...]


@dataclass(frozen=True, slots=True)
class VolumeConstraints:
    """What the volumes of one pod ask of a node."""

    #: ORed terms for each volume. A node must match every volume's terms.
    affinity: tuple[Terms, ...] = ()
    #: Words for the constraints that the model does not have, sorted.
    unmodelled: tuple[str, ...] = ()


UNCONSTRAINED: Final = VolumeConstraints()


class VolumeLookup(Protocol):
    """Answers for one pod; ``VolumeIndex`` in production."""

    def constraints(self, pod: wire.Pod) -> VolumeConstraints:
        """Return what the pod's volumes ask for now; it changes when claims are bound."""
        ...


@dataclass(frozen=True, slots=True)
class _Claim:
    volume: str | None  # None: not bound yet
    exclusive: bool


@dataclass(frozen=True, slots=True)
class _Volume:
    affinity: tuple[Terms, ...]
    driver: str
    unreadable: bool


class VolumeIndex:
    """Claims, volumes and driver limits of one cluster, updated by their watches."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str], _Claim] = {}
        self._volumes: dict[str, _Volume] = {}
        self._limited: dict[str, tuple[str, ...]] = {}  # node → drivers with a limit there
        self._limits: Counter[str] = Counter()  # driver → nodes with a limit

    def claim_upserted(self, claim: wirestorage.PersistentVolumeClaim) -> None:
        """Take over a claim's present state."""
        meta = claim.metadata
        bound = _BIND_COMPLETED in meta.annotations and meta.deletion_timestamp is None
        self._claims[meta.namespace, meta.name] = _Claim(
            (claim.spec.volume_name or None) if bound else None,
            "ReadWriteOncePod" in claim.spec.access_modes,
        )

    def claim_gone(self, namespace: str, name: str) -> None:
        """Forget a deleted claim."""
        self._claims.pop((namespace, name), None)

    def volume_upserted(self, volume: wirestorage.PersistentVolume) -> None:
        """Take over a persistent volume's node affinity, zones and driver."""
        affinity = volume.spec.node_affinity
        required = None if affinity is None else affinity.required
        terms: list[Terms] = list(zone_terms(volume.metadata.labels))
        unreadable = False
        if required is not None:
            try:
                terms.append(node_terms(required.node_selector_terms))
            except UnknownOperator:
                unreadable = True
        driver = volume.spec.csi.driver if volume.spec.csi is not None else ""
        self._volumes[volume.metadata.name] = _Volume(tuple(terms), driver, unreadable)

    def volume_gone(self, name: str) -> None:
        """Forget a deleted volume."""
        self._volumes.pop(name, None)

    def csi_node_upserted(self, node: wirestorage.CsiNode) -> None:
        """Take over the drivers that limit the number of their volumes on a node."""
        self.csi_node_gone(node.metadata.name)
        limited = tuple(
            driver.name
            for driver in node.spec.drivers or ()
            if driver.allocatable is not None and driver.allocatable.count is not None
        )
        if limited:
            self._limited[node.metadata.name] = limited
            self._limits.update(limited)

    def csi_node_gone(self, name: str) -> None:
        """Forget a deleted CSINode."""
        self._limits.subtract(self._limited.pop(name, ()))

    def constraints(self, pod: wire.Pod) -> VolumeConstraints:
        """See ``VolumeLookup``."""
        found: list[VolumeConstraints] = [
            self._of_volume(pod.metadata.namespace, volume)
            for volume in pod.spec.volumes
            if restricts(volume)
        ]
        if not found:
            return UNCONSTRAINED
        affinity = set(chain.from_iterable(one.affinity for one in found))
        words = set(chain.from_iterable(one.unmodelled for one in found))
        return VolumeConstraints(tuple(sorted(affinity, key=repr)), tuple(sorted(words)))

    def _of_volume(self, namespace: str, volume: wire.Volume) -> VolumeConstraints:
        if volume.persistent_volume_claim is not None:
            return self._of_claim(namespace, volume.persistent_volume_claim.claim_name)
        return _named(EPHEMERAL if volume.ephemeral is not None else INLINE_DISK)

    def _of_claim(self, namespace: str, name: str) -> VolumeConstraints:
        claim = self._claims.get((namespace, name))
        if claim is None:
            return _named(CLAIM_MISSING)
        bound = None if claim.volume is None else self._volumes.get(claim.volume)
        if bound is None:
            return _named(CLAIM_UNBOUND)
        words = {
            CLAIM_EXCLUSIVE: claim.exclusive,
            ATTACH_LIMIT: self._limits[bound.driver] > 0,
            VOLUME_OPERATOR: bound.unreadable,
        }
        return VolumeConstraints(
            bound.affinity, tuple(sorted(word for word, holds in words.items() if holds))
        )


def restricts(volume: wire.Volume) -> bool:
    """Return whether a volume can restrict placement at all; most cannot."""
    return (
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.iscsi is not None
        or volume.rbd is not None
    )


def zone_terms(labels: Mapping[str, str]) -> tuple[Terms, ...]:
    """Return the terms that a volume's zone and region labels mean (upstream VolumeZone).

    Per label: the node has one of the zones, under the label itself or, where the label is
    a beta one that the node lacks, under its present name; or the node has none of the four
    labels at all, as in a cluster without zones.
    """
    unzoned = NodeTerm(
        labels=tuple(sorted(Requirement(key, Operator.DOES_NOT_EXIST) for key in _TO_GA))
    )
    return tuple(
        (unzoned, *_zone_choices(key, zones)) for key in _TO_GA if (zones := _zones(labels, key))
    )


def _zones(labels: Mapping[str, str], key: str) -> tuple[str, ...]:
    """Return the zones a label lists; a label with an empty zone is ignored, as upstream does."""
    zones = [zone.strip() for zone in labels.get(key, "").split(_ZONE_SEPARATOR)]
    return tuple(sorted(set(zones))) if all(zones) else ()


def _zone_choices(key: str, zones: tuple[str, ...]) -> Terms:
    own = NodeTerm(labels=(Requirement(key, Operator.IN, zones),))
    if _TO_GA[key] == key:
        return (own,)
    renamed = (
        Requirement(key, Operator.DOES_NOT_EXIST),
        Requirement(_TO_GA[key], Operator.IN, zones),
    )
    return (own, NodeTerm(labels=renamed))


def _named(word: str) -> VolumeConstraints:
    return VolumeConstraints(unmodelled=(word,))
