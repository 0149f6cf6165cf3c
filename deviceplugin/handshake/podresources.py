"""A client of the kubelet's pod-resources API: which container has which devices.

Facts about the API, from the kubelet's source and from other plugins:

- it names pods by namespace and name, there are no UIDs;
- since 1.21 a resource may come in one entry per device: entries are merged by resource;
- pods that have ended may still be listed, init containers are not;
- an allocation is seen here only after Allocate has returned;
- a kubelet that has just started lists a pod only when it has admitted it again, so for a second or
  longer (without an API server: for as long) what pods have is missing: see ``kubelet``;
- ``Get`` is older kubelets' feature gate (GA in 1.36): where it is not served, the list is asked.

A channel that failed is thrown away. gRPC would wait for its own back-off before it dials again,
seconds after the kubelet is back; a new channel does not. A channel goes with its socket, too: a
kubelet that starts makes a new one, and gRPC may not have seen yet that the old one is dead.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import grpc
from grpc import aio

from deviceplugin.allocation.values import ListedDevices
from deviceplugin.errors import DevicePluginError
from deviceplugin.model.holdings import ContainerHolding
from muster.protogen import podresources_v1_pb2 as pb
from muster.protogen.podresources_v1_pb2_grpc import PodResourcesListerStub

SOCKET: Final = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
TIMEOUT_S: Final = 10.0  # the kubelet answers from memory; as its own clients wait
MOST_BYTES: Final = 16 << 20  # of an answer; the kubelet's own client allows as much
_OPTIONS: Final = (
    ("grpc.default_authority", "localhost"),  # servers refuse the path that gRPC would send
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.use_local_subchannel_pool", 1),  # or a new channel would share the old one's back-off
)


KubeletId = tuple[int, int]
"""Inode and ctime in nanoseconds of its socket: another pair is another kubelet."""


class PodResourcesError(DevicePluginError):
    """The kubelet cannot be asked now: no socket (API off, kubelet not up), no answer, refused."""


class PodResources:
    """The client. ``socket``: the kubelet's; it is opened at the first question."""

    def __init__(self, socket: Path = SOCKET, timeout_s: float = TIMEOUT_S) -> None:
        self._socket = socket
        self._timeout_s = timeout_s
        self._channel: aio.Channel | None = None
        self._dialled: os.stat_result | None = None
        self._answered: os.stat_result | None = None

    @property
    def kubelet(self) -> KubeletId | None:
        """Which kubelet gave the last answer; None before the first."""
        there = self._answered
        return None if there is None else (there.st_ino, there.st_ctime_ns)

    async def list(self) -> tuple[ContainerHolding, ...]:
        """Return what every container with devices has. Raises ``PodResourcesError``."""
        return tuple(held for pod in await self._list() for held in _holdings(pod))

    async def known(self) -> tuple[ListedDevices, ...]:
        """Return a row for each resource of each container, as ``allocation`` takes them.

        A pod without devices has one row without a resource. Raises ``PodResourcesError``.
        """
        return tuple(row for pod in await self._list() for row in _rows(pod))

    async def get(self, namespace: str, pod: str) -> tuple[ContainerHolding, ...]:
        """Return what one pod's containers have; nothing where the kubelet does not know the pod.

        Raises ``PodResourcesError``.
        """
        request = pb.GetPodResourcesRequest(pod_name=pod, pod_namespace=namespace)
        try:
            answer = await (await self._stub()).Get(request, timeout=self._timeout_s)
        except aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return ()
            if error.code() in {grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNKNOWN}:
                # UNKNOWN is what a Go server makes of an error without a code.
                listed = await self.list()
                return tuple(h for h in listed if (h.namespace, h.pod) == (namespace, pod))
            raise await self._failed("Get", error) from error
        return tuple(_holdings(answer.pod_resources))

    async def close(self) -> None:
        """Close the channel; the next question opens a new one."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _list(self) -> Sequence[pb.PodResources]:
        request = pb.ListPodResourcesRequest()
        stub, asked = await self._stub(), self._dialled
        try:
            answer = await stub.List(request, timeout=self._timeout_s)
        except aio.AioRpcError as error:
            raise await self._failed("List", error) from error
        there = self._look()
        if asked is None or there is None or not _same(asked, there):
            raise PodResourcesError(f"{self._socket}: the kubelet has restarted; asked again later")
        self._answered = asked
        return answer.pod_resources

    async def _stub(self) -> PodResourcesListerStub:
        """Return a stub; raises ``PodResourcesError`` at once where there is no socket."""
        there = self._look()
        if self._dialled is None or there is None or not _same(self._dialled, there):
            await self.close()
        if there is None:
            raise PodResourcesError(
                f"{self._socket}: is no socket; is the kubelet up, and its folder mounted here?"
            )
        if self._channel is None:
            self._channel = aio.insecure_channel(f"unix:{self._socket}", options=_OPTIONS)
            self._dialled = there
        return PodResourcesListerStub(self._channel)

    def _look(self) -> os.stat_result | None:
        """Return what the socket is now, None where there is none."""
        try:
            there = self._socket.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise PodResourcesError(f"{self._socket}: {error.strerror}") from error
        return there if stat.S_ISSOCK(there.st_mode) else None

    async def _failed(self, method: str, error: aio.AioRpcError) -> PodResourcesError:
        await self.close()
        return PodResourcesError(
            f"{self._socket}: {method}: {error.code().name}: {error.details()}; asked again later"
        )


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    """Return whether it is one socket; an inode is used again, so when it was made counts too."""
    return os.path.samestat(one, other) and one.st_ctime_ns == other.st_ctime_ns


def _rows(pod: pb.PodResources) -> list[ListedDevices]:
    rows = [
        ListedDevices(held.namespace, held.pod, held.container, resource, frozenset(ids))
        for held in _holdings(pod)
        for resource, ids in held.devices.items()
    ]
    return rows or [ListedDevices(pod.namespace, pod.name)]


def _holdings(pod: pb.PodResources) -> list[ContainerHolding]:
    """Return the pod's containers that have devices, their entries merged by resource."""
    found = []
    for container in pod.containers:
        devices: dict[str, tuple[str, ...]] = {}
        for entry in container.devices:
            known = devices.get(entry.resource_name, ())
            devices[entry.resource_name] = (*known, *entry.device_ids)
        if devices:
            found.append(ContainerHolding(pod.namespace, pod.name, container.name, devices))
    return found
