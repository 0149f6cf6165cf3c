"""Shared memory: a memory volume in place of the runtime's 64 MiB, which NCCL and loaders outgrow.

Pages in it count against the container's memory limit, so its size is never more than half of
that; without a limit it is the profile's, and ``unbounded`` sets none. A pod that mounts
anything at /dev/shm has decided for itself. Source: KEP-1967 (memory-backed emptyDir volumes).
"""

from collections.abc import Iterator, Mapping
from typing import Final

from muster.injection.patching.additions import (
    Additions,
    ContainerAdditions,
    ContainerPlace,
    EmptyDir,
    Mount,
    Volume,
)
from muster.injection.patching.containers import container_at
from muster.injection.podview import Container
from muster.injection.profiles.fabric import UNBOUNDED
from muster.injection.subject import Subject
from muster.kube.quantity import QuantityError, to_units

PATH: Final = "/dev/shm"  # noqa: S108 - the path itself is the subject
NAME: Final = "muster-shm"
_MIB: Final = 1024 * 1024


def shared_memory(
    source: str, size: str, subject: Subject, targets: Mapping[ContainerPlace, int]
) -> Iterator[Additions]:
    """Yield the volume and its mounts; nothing where no size is asked for."""
    spec = subject.pod.spec
    places = [place for place in targets if not _mounted(container_at(subject.pod, place))]
    if not size or not places or any(v.name == NAME for v in spec.volumes):
        return
    limits = [limit for c in spec.containers if (limit := _memory_limit(c)) is not None]
    bounded = len(limits) == len(spec.containers) and bool(limits)
    wanted = _smaller(size, sum(limits) // 2) if bounded else size.removesuffix(UNBOUNDED)
    mount = Mount(name=NAME, mount_path=PATH)
    yield Additions(
        source,
        tuple((place, ContainerAdditions(mounts=(mount,))) for place in places),
        volumes=(Volume(name=NAME, empty_dir=EmptyDir(medium="Memory", size_limit=wanted)),),
    )


def _smaller(size: str, most: int) -> str:
    return size if size != UNBOUNDED and to_units(size) <= most else f"{most // _MIB}Mi"


def _mounted(container: Container) -> bool:
    return any(mount.mount_path.rstrip("/") == PATH for mount in container.volume_mounts)


def _memory_limit(container: Container) -> int | None:
    limits = container.resources.limits if container.resources else {}
    try:
        return to_units(limits["memory"]) if "memory" in limits else None
    except QuantityError:
        return None
