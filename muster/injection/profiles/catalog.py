"""Profiles by name: those of this package, and a cluster's own beside them."""

from collections.abc import Iterable, Iterator
from importlib import resources
from types import MappingProxyType
from typing import Final

import msgspec

from muster.injection.errors import ProfileError
from muster.injection.profiles import fabriccheck
from muster.injection.profiles.clusterprofile import ClusterProfile, FabricChoice
from muster.injection.profiles.fabric import FabricProfile, Fabrics

_DECODER: Final = msgspec.yaml.decode


def load() -> Fabrics:
    """Return the profiles that come with Muster."""
    folder = resources.files("muster.injection").joinpath("fabrics")
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    found = (parse(folder.joinpath(file).read_bytes(), source=file) for file in files)
    return MappingProxyType({fabric.name: fabric for fabric in found})


def parse(data: bytes, *, source: str) -> FabricProfile:
    """Read one profile, called ``source`` in messages; raises ``ProfileError``."""
    try:
        fabric: FabricProfile = _DECODER(data, type=FabricProfile)
    except msgspec.MsgspecError as error:
        raise ProfileError(f"{source}: {error}") from error
    found = list(fabriccheck.problems(fabric))
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
    """Return a line for each thing in a cluster's choices that its profiles do not know."""
    where = f"ClusterProfile {cluster.metadata.name}: spec.fabrics"
    return [
        f"{where}[{index}].{problem}"
        for index, choice in enumerate(cluster.spec.fabrics)
        for problem in _of_choice(choice, fabrics)
    ]


def _of_choice(choice: FabricChoice, fabrics: Fabrics) -> Iterator[str]:
    fabric = fabrics.get(choice.profile)
    if fabric is None:
        yield f"profile: {choice.profile!r} is not known; allowed are {_listed(fabrics)}"
        return
    for option in choice.options:
        if option not in fabric.options:
            allowed = _listed(fabric.options)
            yield f"options: {option!r} is none of {fabric.name}; allowed are {allowed}"
    versions = [version.name for version in fabric.spec.versions]
    if choice.version and choice.version not in versions:
        allowed = _listed(versions)
        yield f"version: {choice.version!r} is none of {fabric.name}; allowed are {allowed}"
    if choice.strict and not fabric.spec.net:
        yield f"strict: {fabric.name} has no net, so NCCL_NET is not known; leave it out"
    known = _renameable(fabric)
    for name in choice.names:
        if name not in known:
            yield f"names.{name}: is in no part of {fabric.name}; allowed are {_listed(known)}"
    yield from fabriccheck.of_injected(choice.inject, "inject")


def _renameable(fabric: FabricProfile) -> frozenset[str]:
    """Return the names of resources, networks and claims' templates: clusters differ in them."""
    found = set(fabric.spec.node_resources)
    for _, injected in fabriccheck.layers(fabric):
        found |= {need.name for need in (*injected.resources, *injected.networks)}
        found |= {claim.template for claim in injected.claims if claim.template}
    return frozenset(found)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
