"""A whole node's worth of accelerators with little shared memory: data loaders die of SIGBUS."""

from collections.abc import Iterator
from typing import Final

from muster.injection.checks.finding import PodFinding
from muster.injection.subject import Subject
from muster.kube.quantity import QuantityError, to_units

_ACCELERATORS: Final = 8  # a whole node of most kinds
_LEAST: Final = 8 << 30  # vendors' manifests have 8, 32 and 250 GiB


def shared_memory_is_enough(subject: Subject) -> Iterator[PodFinding]:
    """Yield a warning for a memory volume that is too small for a whole node."""
    if max(subject.accelerated.values(), default=0) < _ACCELERATORS:
        return
    for volume in subject.pod.spec.volumes:
        source = volume.empty_dir
        if source and source.medium == "Memory" and 0 < _bytes(source.size_limit) < _LEAST:
            yield PodFinding(
                f"volumes[{volume.name}].emptyDir.sizeLimit: {source.size_limit} is little for "
                f"{_ACCELERATORS} accelerators and more: 8Gi or more is usual"
            )


def _bytes(size: str) -> int:
    try:
        return to_units(size) if size else 0
    except QuantityError:
        return 0
