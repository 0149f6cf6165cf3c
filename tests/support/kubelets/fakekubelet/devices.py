"""The device manager's tables, and their checkpoint. Follows manager.go of kubelet 1.35."""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from support.kubelets.fakekubelet.pods import Given

from muster.protogen import deviceplugin_v1beta1_pb2 as pb

CHECKPOINT = "kubelet_internal_checkpoint"
NO_NUMA = -1
GRACE_S = 300.0  # endpointStopGracePeriod

Containers = dict[str, dict[str, Given]]
"""Container → resource → what it was given."""


@dataclass
class DeviceTables:
    """``stopped``: resource → since when no plugin serves it; None while one does."""

    all: dict[str, dict[str, pb.Device]] = field(default_factory=dict)
    healthy: dict[str, set[str]] = field(default_factory=dict)
    unhealthy: dict[str, set[str]] = field(default_factory=dict)
    allocated: dict[str, set[str]] = field(default_factory=dict)
    pods: dict[str, Containers] = field(default_factory=dict)
    stopped: dict[str, float | None] = field(default_factory=dict)

    def listed(self, resource: str, devices: Iterable[pb.Device]) -> None:
        """Replace the list of a resource."""
        self.all[resource] = {device.ID: device for device in devices}
        every = self.all[resource].values()
        self.healthy[resource] = {device.ID for device in every if device.health == "Healthy"}
        self.unhealthy[resource] = set(self.all[resource]) - self.healthy[resource]

    def disconnected(self, resource: str, now: float) -> None:
        """Take all devices of a resource for unhealthy."""
        if resource in self.stopped:
            sick = self.unhealthy.setdefault(resource, set())
            sick |= self.healthy.get(resource, set())
            self.healthy[resource] = set()
            self.stopped[resource] = now

    def counted(self, now: float) -> tuple[dict[str, int], dict[str, int]]:
        """Return capacity and allocatable; resources stopped for too long are dropped."""
        for resource in self._expired(now):
            for table in (self.stopped, self.healthy, self.unhealthy):
                table.pop(resource, None)
        allocatable = {resource: len(ids) for resource, ids in self.healthy.items()}
        capacity = {r: n + len(self.unhealthy.get(r, ())) for r, n in allocatable.items()}
        return capacity, allocatable

    def _expired(self, now: float) -> set[str]:
        return {
            resource
            for resource in self.healthy.keys() | self.unhealthy.keys()
            if (since := self.stopped.get(resource, float("-inf"))) is not None
            and now - since > GRACE_S
        }

    def numa(self, resource: str, device: str) -> frozenset[int]:
        """Return a device's NUMA nodes."""
        return frozenset(node.ID for node in self.all[resource][device].topology.nodes)

    def has_topology(self, resource: str) -> bool:
        """Return whether any device of the resource has a NUMA node."""
        return any(device.topology.nodes for device in self.all.get(resource, {}).values())

    def available(self, resource: str) -> set[str]:
        """Return healthy devices that no container has."""
        return self.healthy.get(resource, set()) - self.allocated.get(resource, set())

    def held(self, pod: str, container: str, resource: str) -> frozenset[str] | None:
        """Return what a container has of a resource; None when it never was given any."""
        given = self.pods.get(pod, {}).get(container, {}).get(resource)
        return None if given is None else given.ids

    def is_device_resource(self, resource: str) -> bool:
        """Return whether a plugin serves it, or has once."""
        return resource in self.healthy or resource in self.allocated

    def insert(self, pod: str, container: str, resource: str, given: Given) -> None:
        """Remember what a container was given."""
        self.pods.setdefault(pod, {}).setdefault(container, {})[resource] = given

    def keep_only(self, active: set[str]) -> None:
        """Free what pods that are not active have (UpdateAllocatedDevices)."""
        gone = self.pods.keys() - active
        if gone:
            for pod in gone:
                del self.pods[pod]
            self.recount()

    def recount(self) -> None:
        """Take for allocated what pods have, and nothing else."""
        self.allocated = {}
        for containers in self.pods.values():
            for resources in containers.values():
                for resource, given in resources.items():
                    self.allocated.setdefault(resource, set()).update(given.ids)

    def validate(self) -> None:
        """Raise ``AssertionError`` if a device is at two pods, or at two lasting containers."""
        for resource in self.allocated:
            holders: dict[str, set[str]] = {}
            for pod, containers in self.pods.items():
                for resources in containers.values():
                    for device in resources[resource].ids if resource in resources else ():
                        holders.setdefault(device, set()).add(pod)
            shared = {device: pods for device, pods in holders.items() if len(pods) > 1}
            assert not shared, f"{resource}: given to several pods: {shared}"

    def save(self, folder: Path) -> None:
        """Write the checkpoint as the kubelet does, with a checksum of its own making."""
        entries = [
            {
                "PodUID": pod,
                "ContainerName": container,
                "ResourceName": resource,
                "DeviceIDs": {str(numa): list(ids) for numa, ids in given.numa.items()},
                "AllocResp": base64.b64encode(given.response.SerializeToString()).decode(),
            }
            for pod, containers in self.pods.items()
            for container, resources in containers.items()
            for resource, given in resources.items()
        ]
        registered = {resource: sorted(ids) for resource, ids in self.healthy.items()}
        data = {"PodDeviceEntries": entries, "RegisteredDevices": registered}
        text = json.dumps({"Data": data, "Checksum": 0})
        (folder / CHECKPOINT).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, now: float) -> "DeviceTables":
        """Read the checkpoint: resources are known, but no plugin serves them yet."""
        tables = cls()
        path = folder / CHECKPOINT
        if not path.exists():
            return tables
        data = json.loads(path.read_text(encoding="utf-8"))["Data"]
        for entry in data["PodDeviceEntries"]:
            response = pb.ContainerAllocateResponse.FromString(base64.b64decode(entry["AllocResp"]))
            numa = {int(node): tuple(ids) for node, ids in entry["DeviceIDs"].items()}
            tables.insert(
                entry["PodUID"],
                entry["ContainerName"],
                entry["ResourceName"],
                Given(numa, response),
            )
        tables.recount()
        for resource in data["RegisteredDevices"]:
            tables.healthy[resource], tables.unhealthy[resource] = set(), set()
            tables.stopped[resource] = now
        return tables
