"""Data sets by annotation: ``muster.dev/dataset-NAME: SOURCE:/where/to[:ro]``.

=====================  ==========================================================================
``gs://BUCKET[/DIR]``  GCS FUSE: an ephemeral CSI volume, and the annotation by which GKE's own
                       webhook adds its sidecar
``pvc://CLAIM[/DIR]``  a claim of the pod's namespace, whatever is behind it
``lustre://CLAIM``     the same, for claims of Lustre's CSI drivers, which know no ephemeral volumes
=====================  ==========================================================================

Sources: GoogleCloudPlatform/gcs-fuse-csi-driver docs/usage; core/v1 VolumeMount. Containers that
ask for accelerators get the mount, all containers where none does.
"""

import re
from collections.abc import Iterator
from typing import Final

from muster.injection.patching.additions import (
    CONTAINERS,
    Additions,
    Claim,
    ContainerAdditions,
    ContainerPlace,
    Csi,
    Mount,
    Volume,
)
from muster.injection.subject import Subject
from muster.kube import names

PREFIX: Final = names.DATASET
GCS_DRIVER: Final = "gcsfuse.csi.storage.gke.io"
GCS_TRIGGER: Final = "gke-gcsfuse/volumes"
_NAME: Final = re.compile("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")  # the end of a volume's name
_FORM: Final = re.compile(
    r"(?P<kind>gs|pvc|lustre)://(?P<name>[a-z0-9][a-z0-9._-]*)(?:/(?P<dir>[^/:][^:]*)?)?"
    r":(?P<path>/[^:]*)(?P<ro>:ro)?"
)


_OPTION: Final = re.compile(r"[A-Za-z0-9._/@+=-]*")
"""A directory of a bucket: it becomes one of several mount options, which commas separate."""


def datasets(subject: Subject) -> Iterator[Additions]:
    """Yield a volume and its mounts for each data set that the pod names."""
    for key, text in subject.annotations.items():
        if key.startswith(PREFIX):
            yield _dataset(key.removeprefix(PREFIX), key, text, subject)


def _dataset(name: str, key: str, text: str, subject: Subject) -> Additions:
    if not _NAME.fullmatch(name):
        text = f"{key}: {name!r} names a volume, so lower-case letters, digits and '-' are allowed"
        return Additions("dataset", warnings=(text,))
    found = _FORM.fullmatch(text)
    if found is None or ".." in (found["dir"] or "").split("/"):
        form = "gs://BUCKET[/DIR], pvc://CLAIM[/DIR] or lustre://CLAIM, then :/where/to[:ro]"
        return Additions("dataset", warnings=(f"{key}: {text!r} cannot be read; write {form}",))
    if found["kind"] == "gs" and not _OPTION.fullmatch(found["dir"] or ""):
        text = f"{key}: DIR {found['dir']!r}: allowed are letters, digits and . _ / @ + = -"
        return Additions("dataset", warnings=(text,))
    volume = _volume(f"dataset-{name}", found)
    below = (found["dir"] or "") if found["kind"] != "gs" else ""
    mount = Mount(
        name=volume.name, mount_path=found["path"], read_only=bool(found["ro"]), sub_path=below
    )
    places = tuple(subject.accelerated) or tuple(
        ContainerPlace(CONTAINERS, index) for index in range(len(subject.pod.spec.containers))
    )
    return Additions(
        f"dataset/{name}",
        tuple((place, ContainerAdditions(mounts=(mount,))) for place in places),
        annotations={GCS_TRIGGER: "true"} if found["kind"] == "gs" else {},
        volumes=(volume,),
    )


def _volume(name: str, found: re.Match[str]) -> Volume:
    read_only = bool(found["ro"])
    if found["kind"] != "gs":
        claim = Claim(claim_name=found["name"], read_only=read_only)
        return Volume(name=name, persistent_volume_claim=claim)
    only = f",only-dir={found['dir']}" if found["dir"] else ""
    attributes = {"bucketName": found["name"], "mountOptions": f"implicit-dirs{only}"}
    csi = Csi(driver=GCS_DRIVER, read_only=read_only, volume_attributes=attributes)
    return Volume(name=name, csi=csi)
