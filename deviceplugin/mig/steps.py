"""The next step from how a GPU is cut to how it should be cut. Pure.

    MIG off, to be on ──SwitchMode──► on, cut otherwise ──Recut──► as wanted (no step)
    MIG on, to be off ──Recut (remove all)──► on, not cut ──SwitchMode──► off (no step)

A step depends only on how the GPU is cut now, and the GPU is read again after each step. So the
result is the same after a crash between two steps, or when another program has changed the GPU.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from deviceplugin.mig.layouts import LayoutError, LayoutRule
from deviceplugin.mig.placing import InstanceSlot, place
from deviceplugin.model.inventory import Gpu, GpuMig, MigInstance


@dataclass(frozen=True, slots=True)
class SwitchMode:
    """Switch MIG on or off, on a GPU that no container uses."""

    #: UUID
    gpu: str
    #: the new mode
    enabled: bool


@dataclass(frozen=True, slots=True)
class Recut:
    """Remove instances and make others: all of it or nothing."""

    #: UUID
    gpu: str
    #: UUIDs
    remove: tuple[str, ...]
    #: (profile, first memory slice)
    make: tuple[tuple[str, int], ...]


Step = SwitchMode | Recut


def devices_of(ids: Iterable[str]) -> frozenset[str]:
    """Return the UUIDs behind device ids: replicas and memory units end in "::" and a number."""
    return frozenset(one.partition("::")[0] for one in ids)


def next_step(gpu: Gpu, rule: LayoutRule, in_use: AbstractSet[str]) -> Step | None:
    """Return the next step of a GPU; None when it is cut as the rule says.

    ``in_use``: UUIDs of GPUs and MIG instances that a container has. Raises ``LayoutError`` where
    the GPU cannot be cut so, or not while a container uses what would be removed.
    """
    try:
        return _next_step(gpu, rule, in_use)
    except LayoutError as error:
        raise LayoutError(f"{gpu.uuid} (index {gpu.index}, {gpu.model}): {error}") from error


def _next_step(gpu: Gpu, rule: LayoutRule, in_use: AbstractSet[str]) -> Step | None:
    mig = gpu.mig
    if mig is None:
        if rule.enabled:
            raise LayoutError(
                "cannot be cut: it has no MIG; exclude it by devices or device-filter"
            )
        return None
    if rule.enabled and mig.enabled and mig.pending:
        return _recut(gpu, mig, rule, in_use)
    if rule.enabled:
        _check_fits(mig, rule)
        return _switched(gpu, in_use, enabled=True)
    if mig.instances:
        return _recut(gpu, mig, rule, in_use)
    return _switched(gpu, in_use, enabled=False) if mig.enabled or mig.pending else None


def _switched(gpu: Gpu, in_use: AbstractSet[str], *, enabled: bool) -> SwitchMode:
    if gpu.uuid in in_use:
        raise LayoutError("is in use, and MIG mode changes only on idle GPUs; end its pods first")
    return SwitchMode(gpu.uuid, enabled)


def _check_fits(mig: GpuMig, rule: LayoutRule) -> None:
    """Raise ``LayoutError`` where the driver's numbers show that the rule does not fit."""
    if all(profile.starts for profile in mig.profiles):
        place(mig.profiles, rule.counts)
        return
    most = {profile.name: profile.most for profile in mig.profiles}
    for name, count in rule.counts.items():
        if count > most.get(name, 0):
            raise LayoutError(f"{count} of {name} do not fit; it has at most {most.get(name, 0)}")


def _recut(gpu: Gpu, mig: GpuMig, rule: LayoutRule, in_use: AbstractSet[str]) -> Recut | None:
    _check_places_known(mig)
    busy = in_use & {instance.uuid for instance in mig.instances}
    standing = {_slot(instance) for instance in mig.instances}
    held = {_slot(instance) for instance in mig.instances if instance.uuid in busy}
    try:
        wanted = frozenset(place(mig.profiles, rule.counts, standing, held))
    except LayoutError as error:
        if not busy:
            raise
        raise LayoutError(f"{error}; in use: {', '.join(sorted(busy))}") from error
    remove = tuple(i.uuid for i in mig.instances if _slot(i) not in wanted)
    make = tuple((slot.profile, slot.start) for slot in sorted(wanted - standing))
    return Recut(gpu.uuid, remove, make) if remove or make else None


def _check_places_known(mig: GpuMig) -> None:
    unknown = next((i for i in mig.instances if i.start < 0), None)
    if unknown is not None:
        raise LayoutError(
            f"the place of instance {unknown.uuid} is not known; cutting needs the privileges of "
            "CAP_SYS_ADMIN and /dev/nvidia-caps/nvidia-cap1 (mig/config)"
        )


def _slot(instance: MigInstance) -> InstanceSlot:
    return InstanceSlot(instance.profile, instance.start)
