"""The fake kubelet itself; the package's docstring tells how it is used."""

import asyncio
import random
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

from grpc import aio
from support.kubelets.fakekubelet.admission import Admission, Chance
from support.kubelets.fakekubelet.devices import CHECKPOINT, DeviceTables
from support.kubelets.fakekubelet.plugins import Moods, PluginClient, Plugins
from support.kubelets.fakekubelet.podresources import PodResources
from support.kubelets.fakekubelet.pods import (
    AdmissionError,
    Container,
    Given,
    Pod,
    RunOptions,
    StartError,
    merged,
)
from support.kubelets.fakekubelet.topology import Policy
from support.kubelets.fakekubelet.watcher import Watcher

from muster.protogen import deviceplugin_v1beta1_pb2 as pb
from muster.protogen.deviceplugin_v1beta1_pb2_grpc import add_RegistrationServicer_to_server
from muster.protogen.podresources_v1_pb2_grpc import add_PodResourcesListerServicer_to_server

T = TypeVar("T")

PRE_START_S = 30.0
UNTIL_S = 60.0


class FakeKubelet:
    """A kubelet with its folders below ``root``, a short path, because sockets are there."""

    def __init__(
        self,
        root: Path,
        *,
        seed: int = 0,
        numa: tuple[int, ...] = (0, 1),
        policy: Policy = "none",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.root = root
        self.folder = root / "device-plugins"
        self.registry = root / "plugins_registry"
        self.pod_resources = root / "pod-resources" / "kubelet.sock"
        self.moods = Moods()
        self.pods: dict[str, Pod] = {}
        """All that were admitted or refused and not removed, by UID."""
        self.failed: dict[str, str] = {}
        """UID → why the pod is Failed."""
        self.ended: set[str] = set()
        self.tables = DeviceTables()
        self.offered: list[tuple[str, tuple[str, ...], tuple[str, ...], int]] = []
        """Each call of GetPreferredAllocation: resource, available, must include, size."""
        self._clock = clock
        self._running: set[tuple[str, str]] = set()
        self._known: set[str] = set()  # that it has admitted, or is admitting, since it started
        self._starting = False
        self._chance = Chance(random.Random(seed))
        self._numa, self._policy = numa, policy
        self._server: aio.Server | None = None
        self._watching: asyncio.Task[None] | None = None
        self._turn = asyncio.Event()
        self._plugins = self._new_plugins()

    # Life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, *, reads_pods_when: Callable[[], bool] = lambda: True) -> None:
        """Read the checkpoint, clear the folder, listen; then admit again what was there.

        ``reads_pods_when``: a real one hears of its pods about a second after it listens.
        """
        self._known.clear()
        for folder in (self.folder, self.registry, self.pod_resources.parent):
            folder.mkdir(parents=True, exist_ok=True)
        self.tables = DeviceTables.load(self.folder, self._clock())
        for path in self.folder.iterdir():
            if path.is_socket():
                path.unlink()
        self.pod_resources.unlink(missing_ok=True)
        self._plugins = self._new_plugins()
        self._server = aio.server()
        add_RegistrationServicer_to_server(self._plugins, self._server)
        add_PodResourcesListerServicer_to_server(
            PodResources(
                lambda: self.tables,
                lambda: [pod for uid, pod in self.pods.items() if uid in self._known],
                self.active,
                self._chance,
            ),
            self._server,
        )
        self._server.add_insecure_port(f"unix:{self.folder}/kubelet.sock")
        self._server.add_insecure_port(f"unix:{self.pod_resources}")
        await self._server.start()
        self._watching = asyncio.create_task(Watcher(self.registry, self._plugins).run())
        await self.until(reads_pods_when)
        await self._admit_again()

    async def stop(self) -> None:
        """End as on SIGTERM: plugins are disconnected; kubelet.sock stays without a listener."""
        await self._halt(self._plugins.stop)

    async def kill(self) -> None:
        """End as on SIGKILL."""
        await self._halt(self._plugins.vanish)

    async def restart(self) -> None:
        """Stop and start; containers run on meanwhile."""
        await self.stop()
        await self.start()

    async def reboot(self) -> None:
        """Start again after the machine did: no container runs, and no plugin serves yet."""
        await self.kill()
        self._running.clear()
        await self.start()

    async def _halt(self, plugins: Callable[[], Awaitable[None]]) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching
        await plugins()
        if self._server is not None:
            await self._server.stop(0)
            self._server = None
            with socket.socket(socket.AF_UNIX) as left:
                left.bind(str(self.folder / "kubelet.sock"))

    # The node

    def capacity(self) -> dict[str, int]:
        """Return Node.status.capacity of plugins' resources."""
        return self.tables.counted(self._clock())[0]

    def allocatable(self) -> dict[str, int]:
        """Return Node.status.allocatable of plugins' resources."""
        return self.tables.counted(self._clock())[1]

    def clients(self) -> dict[str, PluginClient]:
        """Return the plugins that are connected, by resource."""
        return self._plugins.clients

    def registered(self) -> list[tuple[str, str]]:
        """Return (resource, endpoint) of each registration since the kubelet's start."""
        return self._plugins.registered

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a state; ``TimeoutError`` when it does not come."""
        async with asyncio.timeout(UNTIL_S):
            while not holds():
                await self._turn.wait()

    async def until_allocatable(self, resource: str, count: int) -> None:
        """Wait until a resource has so many healthy devices."""
        await self.until(lambda: self.allocatable().get(resource) == count)

    # Pods

    async def admit(self, *pods: Pod) -> None:
        """Admit pods as they come in one sync: by creation, one at a time; then see ``failed``."""
        for pod in sorted(pods, key=lambda each: (each.created, each.id)):
            self.pods[pod.id] = pod
            self._known.add(pod.id)
            try:
                await self._admission().admit(pod)
            except AdmissionError as refused:
                self.failed[pod.id] = f"UnexpectedAdmissionError: {refused}"
            self._tell()

    async def start_container(self, pod: Pod, name: str = "main") -> RunOptions:
        """Start, or start again, a container of an admitted pod; Allocate is not called for it.

        Raises ``StartError``; the kubelet would try again.
        """
        container = next(c for c in (*pod.init, *pod.containers) if c.name == name)
        for resource in self._chance.order(container.limits):
            await self._pre_start(pod, container, resource)
        self._running.add((pod.id, name))
        return merged(self.given(pod, name))

    async def run(self, pod: Pod) -> RunOptions:
        """Admit a pod and start its containers; return what the last one is run with.

        Raises ``AdmissionError`` or ``StartError``.
        """
        await self.admit(pod)
        if pod.id in self.failed:
            raise AdmissionError(self.failed[pod.id])
        options = [
            await self.start_container(pod, each.name) for each in (*pod.init, *pod.containers)
        ]
        return options[-1]

    def die(self, pod: Pod, name: str = "main") -> None:
        """Have a container die; ``start_container`` starts it again."""
        self._running.discard((pod.id, name))

    def health(self, pod: Pod, name: str = "main") -> dict[str, dict[str, str]]:
        """Return a container's allocatedResourcesStatus: resource → id → health.

        manager.go, UpdateAllocatedResourcesStatus: what the plugin listed last, and Healthy for an
        id that it no longer lists.
        """
        return {
            resource: {
                id_: device.health if (device := every.get(id_)) is not None else "Healthy"
                for every in (self.tables.all.get(resource, {}),)
                for id_ in given.ids
            }
            for resource, given in self.given(pod, name).items()
        }

    def end(self, pod: Pod) -> None:
        """Have a pod's containers end; what it has is free with the next admission or List."""
        self.ended.add(pod.id)
        self._running = {each for each in self._running if each[0] != pod.id}

    def remove(self, pod: Pod) -> None:
        """Have a pod gone for good."""
        self.end(pod)
        self.pods.pop(pod.id, None)
        self.failed.pop(pod.id, None)

    def given(self, pod: Pod, container: str = "main") -> dict[str, Given]:
        """Return what a container was given, by resource."""
        return dict(self.tables.pods.get(pod.id, {}).get(container, {}))

    def ids(self, pod: Pod, resource: str, container: str = "main") -> frozenset[str]:
        """Return the devices of a container."""
        return self.tables.held(pod.id, container, resource) or frozenset()

    def active(self) -> set[str]:
        """Return UIDs of pods that are neither Failed nor ended."""
        return self.pods.keys() - self.failed.keys() - self.ended

    # What plugins tell (Handler)

    def connected(self, resource: str) -> None:
        self.tables.stopped[resource] = None
        self._tell()

    def listed(self, resource: str, devices: list[pb.Device]) -> None:
        self.tables.listed(resource, devices)
        self._save()
        self._tell()

    def disconnected(self, resource: str) -> None:
        self.tables.disconnected(resource, self._clock())
        self._tell()

    # Within

    def _new_plugins(self) -> Plugins:
        return Plugins(self.folder, self, self.moods, changed=self._tell)

    def _admission(self) -> Admission:
        return Admission(
            self.tables,
            self._chance,
            self._numa,
            self._policy,
            self._preferred,
            self._allocate,
            lambda pod, each: self._starting and (pod.id, each.name) in self._running,
            self.active,
            self._save,
        )

    async def _admit_again(self) -> None:
        """Admit the pods of before once more: those that run are left as they are."""
        self._starting = True
        active = self.active()
        try:
            await self.admit(*(pod for uid, pod in self.pods.items() if uid in active))
        finally:
            self._starting = False

    def _endpoint(self, resource: str) -> PluginClient:
        client = self._plugins.clients.get(resource)
        if client is None:
            raise AdmissionError(f"endpoint of {resource} has been stopped")
        return client

    async def _preferred(
        self, resource: str, available: list[str], must: list[str], size: int
    ) -> frozenset[str] | None:
        client = self._endpoint(resource)
        if client.options is None or not client.options.get_preferred_allocation_available:
            return None
        self.offered.append((resource, tuple(available), tuple(must), size))
        request = pb.PreferredAllocationRequest()
        request.container_requests.add(
            available_deviceIDs=available, must_include_deviceIDs=must, allocation_size=size
        )
        response = await _answered(client.stub.GetPreferredAllocation(request))
        return frozenset(response.container_responses[0].deviceIDs)

    async def _allocate(self, resource: str, ids: list[str]) -> pb.AllocateResponse:
        request = pb.AllocateRequest()
        request.container_requests.add(devices_ids=ids)
        return await _answered(self._endpoint(resource).stub.Allocate(request))

    async def _pre_start(self, pod: Pod, container: Container, resource: str) -> None:
        if not self.tables.is_device_resource(resource) or not container.limits[resource]:
            return
        client = self._plugins.clients.get(resource)
        if client is None or client.options is None or not client.options.pre_start_required:
            return
        held = self.tables.held(pod.id, container.name, resource)
        if held is None:
            raise StartError(f"no devices found allocated in local cache for pod {pod.id}")
        request = pb.PreStartContainerRequest(devices_ids=self._chance.order(held))
        try:
            await client.stub.PreStartContainer(request, timeout=PRE_START_S)
        except aio.AioRpcError as error:
            raise StartError(f"PreStartContainer: {error.details()}") from error

    def _save(self) -> None:
        if self.folder.is_dir():
            self.tables.save(self.folder)

    def _tell(self) -> None:
        self.tables.validate()
        woken, self._turn = self._turn, asyncio.Event()
        woken.set()


async def _answered(call: Awaitable[T]) -> T:
    """Wait for a call; one that ends with its connection fails, as any other that is not answered.

    grpc.aio cancels the calls of a closed channel; a caller would take that for its own end.
    """
    try:
        return await call
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ConnectionError("the plugin's connection was closed") from None


def forget_checkpoint(folder: Path) -> None:
    """Remove the checkpoint, as an administrator does who repairs a node."""
    (folder / CHECKPOINT).unlink(missing_ok=True)
