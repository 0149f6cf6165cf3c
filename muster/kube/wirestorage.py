"""Volumes, claims and the attach limits of nodes as they travel; see ``muster.kube.wire``."""

from muster.kube.wire import NodeSelector, ObjectMeta, Wire


class ClaimSpec(Wire, frozen=True):
    """core/v1 PersistentVolumeClaimSpec."""

    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()


class PersistentVolumeClaim(Wire, frozen=True):
    """core/v1 PersistentVolumeClaim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClaimSpec = ClaimSpec()


class VolumeNodeAffinity(Wire, frozen=True):
    """core/v1 VolumeNodeAffinity."""

    required: NodeSelector | None = None


class CsiVolumeSource(Wire, frozen=True):
    """core/v1 CSIPersistentVolumeSource."""

    driver: str = ""
    volume_handle: str = ""


class VolumeSpec(Wire, frozen=True):
    """core/v1 PersistentVolumeSpec."""

    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiVolumeSource | None = None


class PersistentVolume(Wire, frozen=True):
    """core/v1 PersistentVolume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeSpec = VolumeSpec()


class CsiDriverLimit(Wire, frozen=True):
    """storage/v1 VolumeNodeResources: how many volumes of a driver a node attaches."""

    count: int | None = None


class CsiNodeDriver(Wire, frozen=True):
    """storage/v1 CSINodeDriver."""

    name: str = ""
    allocatable: CsiDriverLimit | None = None


class CsiNodeSpec(Wire, frozen=True):
    """storage/v1 CSINodeSpec."""

    #: a kubelet without drivers writes null
    drivers: tuple[CsiNodeDriver, ...] | None = ()


class CsiNode(Wire, frozen=True):
    """storage/v1 CSINode; named like its node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CsiNodeSpec = CsiNodeSpec()
