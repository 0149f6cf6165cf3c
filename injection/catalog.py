"""Fabric profiles by name: those of this package, and a cluster's own beside them."""

from collections.abc import Iterator
from importlib import resources
from types import MappingProxyType
from typing import Final

import msgspec

from injection.clusterprofile import ClusterProfile
from injection.errors import ProfileError
from injection.fabric import Fabric, Fabrics, Injected
from injection.reserved import is_reserved
from kube.quantity import QuantityError, to_units

_DECODER: Final = msgspec.yaml.decode


def load() -> Fabrics:
    """Return the profiles that come with Muster."""
    folder = resources.files("injection").joinpath("fabrics")
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    found = (parse(folder.joinpath(file).read_bytes(), source=file) for file in files)
    return MappingProxyType({fabric.name: fabric for fabric in found})


def parse(data: bytes, *, source: str) -> Fabric:
    """Read one profile, called ``source`` in messages; raises ``ProfileError``."""
    try:
        fabric: Fabric = _DECODER(data, type=Fabric)
    except msgspec.MsgspecError as error:
        raise ProfileError(f"{source}: {error}") from error
    found = list(_problems(fabric))
    if found:
        raise ProfileError("\n".join(f"{source}: {problem}" for problem in found))
    return fabric


def parse_cluster(data: bytes, source: str) -> ClusterProfile:
    """Read a ClusterProfile, called ``source`` in messages; raises ``ProfileError``."""
    try:
        profile: ClusterProfile = _DECODER(data, type=ClusterProfile)
    except msgspec.MsgspecError as error:
        raise ProfileError(f"{source}: {error}") from error
    return profile


def unknown_fabrics(cluster: ClusterProfile, fabrics: Fabrics) -> list[str]:
    """Return a line for each choice of a cluster that names no profile there is."""
    allowed = ", ".join(sorted(fabrics))
    return [
        f"ClusterProfile {cluster.metadata.name}: spec.fabrics[{index}].profile: "
        f"{choice.profile!r} is not known; allowed are {allowed}"
        for index, choice in enumerate(cluster.spec.fabrics)
        if choice.profile not in fabrics
    ]


def _problems(fabric: Fabric) -> Iterator[str]:
    spec = fabric.spec
    if not spec.sources:
        yield "spec.sources: is empty: say where the values come from"
    yield from _of(spec.inject, "spec.inject")
    for index, extra in enumerate(spec.extras):
        yield from _of(extra.inject, f"spec.extras[{index}].inject")


def _of(injected: Injected, where: str) -> Iterator[str]:
    for name in filter(is_reserved, injected.env):
        yield f"{where}.env.{name}: belongs to a framework or the kubelet; no profile may set it"
    for kind, needs in (("resources", injected.resources), ("networks", injected.networks)):
        for need in needs:
            if need.amount < 1 and not need.share:
                yield f"{where}.{kind}[{need.name}]: asks for nothing: set amount or share"
    for volume in injected.volumes:
        sources = (volume.host_path, volume.empty_dir, volume.config_map)
        if sum(source is not None for source in sources) != 1:
            yield f"{where}.volumes[{volume.name}]: needs one of hostPath, emptyDir, configMap"
    if injected.shared_memory:
        try:
            to_units(injected.shared_memory)
        except QuantityError as error:
            yield f"{where}.sharedMemory: {error}"
