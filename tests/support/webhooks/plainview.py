"""A ``ResourceView`` with no opinion of its own, for tests of what is around it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from deviceplugin.errors import AllocationRefused, RefusalCause
from deviceplugin.model.answers import ContainerAnswer, ShownDevice


@dataclass
class PlainView:
    """Shows ``devices``, prefers the last ones, names in GIVEN what it gives."""

    resource: str = "nvidia.com/gpu"
    devices: dict[str, ShownDevice] = field(default_factory=dict)
    steers: bool = True
    confirms: bool = False
    breaks: bool = False
    started: list[tuple[str, ...]] = field(default_factory=list)
    allocated: list[tuple[str, ...]] = field(default_factory=list)

    def put(self, *devices: ShownDevice) -> None:
        self.devices.update({device.id: device for device in devices})

    def shown(self) -> tuple[ShownDevice, ...]:
        return tuple(self.devices.values())

    async def consult(self, _ids: tuple[str, ...], _size: int) -> None:
        if self.breaks:
            raise RuntimeError("the view is broken")

    def preferred(
        self, available: tuple[str, ...], must_include: tuple[str, ...], size: int
    ) -> tuple[str, ...]:
        if self.breaks:
            raise RuntimeError("the view is broken")
        others = sorted(set(available) - set(must_include), reverse=True)
        return (*must_include, *others[: size - len(must_include)])

    def allocate(self, ids: tuple[str, ...]) -> ContainerAnswer:
        if self.breaks:
            raise RuntimeError("the view is broken")
        for device in ids:
            known = self.devices.get(device)
            if known is None:
                raise AllocationRefused(
                    RefusalCause.UNKNOWN_DEVICE, f"{device}: is no device of {self.resource}"
                )
            if not known.healthy:
                raise AllocationRefused(RefusalCause.UNHEALTHY, f"{device}: is not healthy")
        self.allocated.append(ids)
        return ContainerAnswer(
            envs={variable(self.resource): ",".join(sorted(ids))},
        )

    def starting(self, ids: tuple[str, ...]) -> None:
        if self.breaks:
            raise AllocationRefused(RefusalCause.TAKEN, "is somebody else's")
        self.started.append(ids)


def variable(resource: str) -> str:
    """Return the environment variable that tells what was given of a resource."""
    return "GIVEN_" + re.sub(r"[^A-Z0-9]", "_", resource.upper())


def given_by(env: Mapping[str, str], resource: str) -> list[str]:
    """Return what a container's environment says that it was given, sorted."""
    return env[variable(resource)].split(",")


def view(resource: str, ids: Iterable[str], *, numa: int = 0) -> PlainView:
    """Return a view of healthy devices, alternating over ``numa`` NUMA nodes (0: none reported)."""
    found = PlainView(resource)
    for number, each in enumerate(ids):
        found.put(ShownDevice(each, numa=(number % numa,) if numa else ()))
    return found
