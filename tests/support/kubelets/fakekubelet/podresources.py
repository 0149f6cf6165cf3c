"""The pod-resources API as the kubelet answers it (podresources/server_v1.go of 1.35).

No UID; an entry for each device; plain init containers are left out; of the devices only healthy
ones are allocatable; order is random; what a container was given is there once Allocate has
returned.
"""

from collections.abc import Callable, Iterable

import grpc
from grpc import aio
from support.kubelets.fakekubelet.admission import Chance
from support.kubelets.fakekubelet.devices import NO_NUMA, DeviceTables
from support.kubelets.fakekubelet.pods import Given, Pod

from muster.protogen import podresources_v1_pb2 as pb
from muster.protogen.podresources_v1_pb2_grpc import PodResourcesListerServicer


class PodResources(PodResourcesListerServicer):
    """``pods``: those that the kubelet knows of, ended ones too; ``active``: their UIDs."""

    def __init__(
        self,
        tables: Callable[[], DeviceTables],
        pods: Callable[[], list[Pod]],
        active: Callable[[], set[str]],
        chance: Chance,
    ) -> None:
        self._tables = tables
        self._pods = pods
        self._active = active
        self._chance = chance

    async def List(
        self,
        _request: pb.ListPodResourcesRequest,
        _context: aio.ServicerContext[pb.ListPodResourcesRequest, pb.ListPodResourcesResponse],
    ) -> pb.ListPodResourcesResponse:
        self._tables().keep_only(self._active())
        pods = {pod.id: pod for pod in self._pods()}
        return pb.ListPodResourcesResponse(
            pod_resources=[self._pod(pods[uid]) for uid in self._chance.order(pods)]
        )

    async def GetAllocatableResources(
        self,
        _request: pb.AllocatableResourcesRequest,
        _context: aio.ServicerContext[
            pb.AllocatableResourcesRequest, pb.AllocatableResourcesResponse
        ],
    ) -> pb.AllocatableResourcesResponse:
        tables = self._tables()
        return pb.AllocatableResourcesResponse(
            devices=[
                _entry(resource, device, tables.numa(resource, device))
                for resource, healthy in tables.healthy.items()
                for device in self._chance.order(healthy)
            ]
        )

    async def Get(
        self,
        request: pb.GetPodResourcesRequest,
        context: aio.ServicerContext[pb.GetPodResourcesRequest, pb.GetPodResourcesResponse],
    ) -> pb.GetPodResourcesResponse:
        for pod in self._pods():
            if (pod.name, pod.namespace) == (request.pod_name, request.pod_namespace):
                return pb.GetPodResourcesResponse(pod_resources=self._pod(pod))
        await context.abort(
            grpc.StatusCode.UNKNOWN,
            f"pod {request.pod_name} in namespace {request.pod_namespace} not found",
        )
        raise AssertionError

    def _pod(self, pod: Pod) -> pb.PodResources:
        lasting = [each for each in pod.init if each.restartable]
        containers = self._tables().pods.get(pod.id, {})
        return pb.PodResources(
            name=pod.name,
            namespace=pod.namespace,
            containers=[
                pb.ContainerResources(
                    name=container.name, devices=self._entries(containers.get(container.name, {}))
                )
                for container in (*lasting, *pod.containers)
            ],
        )

    def _entries(self, given: dict[str, Given]) -> list[pb.ContainerDevices]:
        found = [
            _entry(resource, device, [n for n, ids in each.numa.items() if device in ids])
            for resource, each in sorted(given.items())
            for device in sorted(each.ids)
        ]
        self._chance.rng.shuffle(found)
        return found


def _entry(resource: str, device: str, numa: Iterable[int]) -> pb.ContainerDevices:
    entry = pb.ContainerDevices(resource_name=resource, device_ids=[device])
    entry.topology.nodes.extend(pb.NUMANode(ID=node) for node in numa if node != NO_NUMA)
    return entry
