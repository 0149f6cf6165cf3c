"""Which devices a container gets: manager.go's devicesToAllocate and what is around it.

Where Go iterates over a map or a set the order is random; here ``Chance`` shuffles, by a seed.
"""

import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from support.kubelets.fakekubelet import topology
from support.kubelets.fakekubelet.devices import NO_NUMA, DeviceTables
from support.kubelets.fakekubelet.pods import AdmissionError, Container, Given, Pod

from muster.protogen import deviceplugin_v1beta1_pb2 as pb

Reusable = dict[str, set[str]]


@dataclass
class Chance:
    """Go's random order."""

    rng: random.Random

    def order(self, names: Iterable[str]) -> list[str]:
        shuffled = sorted(names)
        self.rng.shuffle(shuffled)
        return shuffled


@dataclass
class Admission:
    """``preferred`` and ``allocate`` call the plugin; the former returns None if it has no say."""

    tables: DeviceTables
    chance: Chance
    nodes: tuple[int, ...]
    policy: topology.Policy
    preferred: Callable[[str, list[str], list[str], int], Awaitable[frozenset[str] | None]]
    allocate: Callable[[str, list[str]], Awaitable[pb.AllocateResponse]]
    #: A container that ran when the kubelet started (containerRunningSet): while pods are read in,
    #: it is left alone.
    stands: Callable[[Pod, Container], bool]
    active: Callable[[], set[str]]
    saved: Callable[[], None]
    _affinity: dict[tuple[str, str], topology.Hint] = field(default_factory=dict)

    async def admit(self, pod: Pod) -> None:
        """Give every container its devices. Raises ``AdmissionError``."""
        reusable: Reusable = {}
        for container in (*pod.init, *pod.containers):
            self._align(pod, container, reusable)
            await self._container(pod, container, reusable)
            given = self.tables.pods.get(pod.id, {}).get(container.name, {})
            lasts = container in pod.containers or container.restartable
            for resource, each in given.items():
                if lasts:
                    reusable[resource] = reusable.get(resource, set()) - each.ids
                else:
                    reusable[resource] = reusable.get(resource, set()) | each.ids

    def _align(self, pod: Pod, container: Container, reusable: Reusable) -> None:
        """Set the container's NUMA affinity, or refuse it (topology manager, container scope)."""
        self.tables.keep_only(self.active())
        hints = {
            resource: self._hints(pod, container, resource, size, reusable.get(resource, set()))
            for resource, size in container.limits.items()
            if self.tables.is_device_resource(resource)
        }
        hint, admitted = topology.merge(self.policy, self.nodes, hints)
        if not admitted:
            raise AdmissionError("Resources cannot be allocated with Topology locality")
        self._affinity[pod.id, container.name] = hint

    def _hints(
        self, pod: Pod, container: Container, resource: str, size: int, reusable: set[str]
    ) -> list[topology.Hint] | None:
        tables = self.tables
        if not tables.has_topology(resource):
            return None
        every = {device: tables.numa(resource, device) for device in tables.all[resource]}
        held = tables.held(pod.id, container.name, resource)
        if held:
            if len(held) != size:
                return []
            known = [device for device in held if device in every]
            return topology.device_hints(self.nodes, every, known, (), size)
        available = tables.available(resource)
        if len(available | reusable) < size:
            return []
        return topology.device_hints(self.nodes, every, available, reusable, size)

    async def _container(self, pod: Pod, container: Container, reusable: Reusable) -> None:
        changed = False
        for resource in self.chance.order(container.limits):
            if not self.tables.is_device_resource(resource):
                continue
            self.tables.keep_only(self.active())
            ids = await self._to_allocate(pod, container, resource, reusable.get(resource, set()))
            if ids:
                await self._call(pod, container, resource, ids)
                changed = True
        if changed:
            self.saved()

    async def _call(self, pod: Pod, container: Container, resource: str, ids: set[str]) -> None:
        try:
            response = await self.allocate(resource, self.chance.order(ids))
        except Exception as error:
            self.tables.recount()
            raise AdmissionError(f"Allocate failed due to {error}, which is unexpected") from error
        if not response.container_responses:
            raise AdmissionError("no containers return in allocation response")
        numa: dict[int, list[str]] = {}
        for device in sorted(ids):
            for node in self.tables.numa(resource, device) or {NO_NUMA}:
                numa.setdefault(node, []).append(device)
        given = Given({n: tuple(d) for n, d in numa.items()}, response.container_responses[0])
        self.tables.insert(pod.id, container.name, resource, given)

    async def _to_allocate(
        self, pod: Pod, container: Container, resource: str, reusable: set[str]
    ) -> set[str]:
        """Return the devices to call Allocate with; none where there is nothing to do."""
        required = container.limits[resource]
        held = self.tables.held(pod.id, container.name, resource)
        if held is not None and len(held) != required:
            raise AdmissionError(f"changed request for {resource}: {len(held)} to {required}")
        if self.stands(pod, container):
            return set()
        healthy = self.tables.healthy.get(resource)
        if healthy is None:
            raise AdmissionError(f"cannot allocate unregistered device {resource}")
        if not healthy:
            raise AdmissionError(f"no healthy devices present; cannot allocate {resource}")
        if held is not None and not held <= healthy:
            raise AdmissionError("previously allocated devices are no longer healthy")
        if held is not None or required == 0:
            return set()
        taking = _Taking(self.tables, resource, required, self.chance)
        await self._choose(pod, container, taking, reusable)
        return taking.taken

    async def _choose(
        self, pod: Pod, container: Container, taking: "_Taking", reusable: set[str]
    ) -> None:
        resource, required = taking.resource, taking.required
        if taking.take(reusable):
            return
        available = self.tables.available(resource)
        if len(available) < taking.needed:
            raise AdmissionError(
                f"requested number of devices unavailable for {resource}. "
                f"Requested: {taking.needed}, Available: {len(available)}"
            )
        aligned, rest = self._by_affinity(pod, container, resource, available)
        held = set(taking.taken)
        if taking.needed < len(aligned):
            offered = aligned | held
            preferred = await self._ask(resource, offered, held, required)
            if not taking.take(preferred & aligned):
                taking.take(aligned)
            return
        if taking.take(aligned):
            return
        held = set(taking.taken)
        preferred = await self._ask(resource, available | held, held, required)
        if taking.take(preferred & available):
            return
        for devices in rest:
            if taking.take(devices):
                return

    async def _ask(self, resource: str, offered: set[str], must: set[str], size: int) -> set[str]:
        try:
            chosen = await self.preferred(
                resource, self.chance.order(offered), self.chance.order(must), size
            )
        except Exception as error:
            raise AdmissionError(f"GetPreferredAllocation failed: {error}") from error
        return set(chosen or ())

    def _by_affinity(
        self, pod: Pod, container: Container, resource: str, available: set[str]
    ) -> tuple[set[str], list[set[str]]]:
        """Return devices of the affinity's NUMA nodes, then those of others and of none."""
        hint = self._affinity.get((pod.id, container.name))
        if hint is None or hint.mask is None or not self.tables.has_topology(resource):
            return set(), [available]
        aligned, unaligned, without = set[str](), set[str](), set[str]()
        for device in available:
            numa = self.tables.numa(resource, device)
            where = aligned if numa & hint.mask else unaligned if numa else without
            where.add(device)
        return aligned, [unaligned, without]


@dataclass
class _Taking:
    """Devices taken for one request (allocateRemainingFrom)."""

    tables: DeviceTables
    resource: str
    required: int
    chance: Chance
    taken: set[str] = field(default_factory=set)

    @property
    def needed(self) -> int:
        return self.required - len(self.taken)

    def take(self, devices: set[str]) -> bool:
        """Take of ``devices`` until there are enough; return whether there are."""
        allocated = self.tables.allocated.setdefault(self.resource, set())
        for device in self.chance.order(devices - self.taken):
            if self.needed == 0:
                break
            allocated.add(device)
            self.taken.add(device)
        return self.needed == 0
