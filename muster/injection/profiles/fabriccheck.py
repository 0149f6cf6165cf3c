"""What can be wrong with a fabric profile beyond its schema: pure, a line for each.

Every line is ``field: value: what is wrong, what is allowed``; ``catalog`` puts the file before
it. A profile with a line is not used: half a fabric is worse than none.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from muster.injection.profiles.fabric import UNBOUNDED, FabricProfile, Injected, ResourceNeed
from muster.injection.profiles.mergedprofile import over
from muster.injection.profiles.reservednames import is_reserved
from muster.kube.quantity import QuantityError, to_units

VOLUME_PREFIX: Final = "muster-"
_RESTARTING: Final = "Always"


def problems(fabric: FabricProfile) -> Iterator[str]:
    """Yield what is wrong with a profile."""
    spec = fabric.spec
    if not spec.sources:
        yield "spec.sources: is empty: say where the values come from"
    for where, injected in layers(fabric):
        yield from of_injected(injected, where)
        yield from _unvouched(fabric, injected, where)
    yield from _twice((version.name for version in spec.versions), "spec.versions")
    yield from _unmounted(fabric)
    if spec.accelerators < 0:
        yield f"spec.accelerators: {spec.accelerators}: must not be negative"


def layers(fabric: FabricProfile) -> Iterator[tuple[str, Injected]]:
    """Yield everything that a profile may inject, with its place in the file."""
    spec = fabric.spec
    yield "spec.inject", spec.inject
    for index, version in enumerate(spec.versions):
        yield f"spec.versions[{index}].inject", version.inject
    for index, extra in enumerate(spec.extras):
        yield f"spec.extras[{index}].inject", extra.inject


def of_injected(injected: Injected, where: str) -> Iterator[str]:
    """Yield what is wrong with one layer, whoever wrote it."""
    for kind, names in (("env", injected.env), ("paths", injected.paths)):
        for name in filter(is_reserved, names):
            yield f"{where}.{kind}.{name}: is a framework's or the kubelet's; no profile may set it"
    for kind, needs in (("resources", injected.resources), ("networks", injected.networks)):
        for need in needs:
            yield from _of_need(need, f"{where}.{kind}[{need.name}]")
    yield from _of_volumes(injected, where)
    for sidecar in injected.sidecars:
        if sidecar.restart_policy != _RESTARTING:
            yield (
                f"{where}.sidecars[{sidecar.name}].restartPolicy: {sidecar.restart_policy!r}: "
                f"must be {_RESTARTING}, else it is an init container that never ends"
            )
    yield from _of_texts(injected, where)


def _of_need(need: ResourceNeed, where: str) -> Iterator[str]:
    if need.share == (need.amount > 0):
        yield f"{where}: needs one of amount (1 or more) and share"
    if min(need.amount, need.otherwise, need.per) < 0:
        yield f"{where}: amount, otherwise and per must not be negative"


def _of_volumes(injected: Injected, where: str) -> Iterator[str]:
    for volume in injected.volumes:
        at = f"{where}.volumes[{volume.name}]"
        sources = (volume.host_path, volume.empty_dir, volume.config_map)
        if sum(source is not None for source in sources) != 1:
            yield f"{at}: needs one of hostPath, emptyDir, configMap"
        if not volume.name.startswith(VOLUME_PREFIX):
            yield f"{at}.name: {volume.name!r}: must start with {VOLUME_PREFIX!r}, not be a user's"
        if volume.mount_path and not volume.mount_path.startswith("/"):
            yield f"{at}.mountPath: {volume.mount_path!r}: must be absolute"


def _of_texts(injected: Injected, where: str) -> Iterator[str]:
    if injected.shared_memory not in ("", UNBOUNDED):
        try:
            to_units(injected.shared_memory)
        except QuantityError as error:
            yield f"{where}.sharedMemory: {error}; allowed are quantities and {UNBOUNDED}"
    for entries in injected.lists:
        try:
            msgspec.json.decode(entries.entry)
        except msgspec.MsgspecError as error:
            at = f"{where}.lists[{entries.annotation}].entry"
            yield f"{at}: {entries.entry!r}: is no JSON: {error}"


def _unvouched(fabric: FabricProfile, injected: Injected, where: str) -> Iterator[str]:
    """Yield names that no source of the profile stands for."""
    sources = fabric.spec.sources
    if not sources or any(not source.of for source in sources):
        return
    exact = {name for source in sources for name in source.of}
    prefixes = tuple(name[:-1] for name in exact if name.endswith("*"))
    for name in _names(injected):
        if name not in exact and not (prefixes and name.startswith(prefixes)):
            yield f"{where}: {name}: no entry of spec.sources says where it comes from"


def _names(injected: Injected) -> Iterator[str]:
    yield from injected.env
    yield from injected.paths
    yield from injected.annotations
    yield from injected.labels
    yield from (need.name for need in (*injected.resources, *injected.networks))
    yield from (entries.annotation for entries in injected.lists)
    yield from (claim.name for claim in injected.claims)


def _twice(names: Iterable[str], where: str) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f"{where}[{name}]: is there twice"
        seen.add(name)


def _unmounted(fabric: FabricProfile) -> Iterator[str]:
    """Yield volumes that no container mounts, and mounts of sidecars that have no volume."""
    everything = Injected()
    for _, injected in layers(fabric):
        everything = over(everything, injected)
    used = {mount.name for sidecar in everything.sidecars for mount in sidecar.volume_mounts}
    for volume in everything.volumes:
        if not volume.mount_path and volume.name not in used:
            remedy = "give it a mountPath or a sidecar"
            yield f"spec: volume {volume.name}: no container mounts it: {remedy}"
    for name in sorted(used - {volume.name for volume in everything.volumes}):
        yield f"spec: sidecars mount {name}: there is no such volume"
