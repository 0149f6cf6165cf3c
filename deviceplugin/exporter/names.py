"""The labels of a GPU's series, as dcgm-exporter writes them.

A GPU that is cut has one series per MIG instance, with the instance's profile and id and the pod
that has it: values of the whole GPU are repeated, memory is the instance's own. A GPU that pods
share has one series per replica that is given away, with the replica's number as ``vgpu``
(dcgm-exporter's ``--kubernetes-virtual-gpus``): sum such series with ``max by (UUID)``.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from deviceplugin.exporter.text import labels
from deviceplugin.model.holdings import ContainerHolding
from deviceplugin.model.inventory import Gpu, Inventory, MigInstance

Pods = Mapping[str, tuple[Mapping[str, str], ...]]
"""Device → for each id of it that is given away: container, namespace, pod and vgpu."""


@dataclass(frozen=True, slots=True)
class GpuSeries:
    """One series of a GPU."""

    #: UUID of the GPU
    gpu: str
    #: the labels as Prometheus' text
    labels: str
    #: UUID of the MIG instance, "" for the whole GPU
    instance: str = ""


def pods(holdings: Iterable[ContainerHolding]) -> Pods:
    """Return the labels of each device's holders, over all resources."""
    found: dict[str, list[Mapping[str, str]]] = {}
    for held in holdings:
        for device_id in {id_: None for ids in held.devices.values() for id_ in ids}:
            device, _, replica = device_id.partition("::")
            found.setdefault(device, []).append(
                {
                    "container": held.container,
                    "namespace": held.namespace,
                    "pod": held.pod,
                    "vgpu": replica,
                }
            )
    return {device: tuple(each) for device, each in found.items()}


def named(inventory: Inventory, given: Pods, host: str) -> Iterator[GpuSeries]:
    """Yield every series of every GPU."""
    for gpu in inventory.gpus:
        instances = gpu.mig.instances if gpu.mig and gpu.mig.enabled else ()
        for instance in instances or (None,):
            device = instance.uuid if instance else gpu.uuid
            base = _base(gpu, instance) | {
                "Hostname": host,
                "DCGM_FI_DRIVER_VERSION": inventory.driver.version,
            }
            for pod in given.get(device) or ({},):
                uuid = instance.uuid if instance else ""
                yield GpuSeries(gpu.uuid, labels({**base, **pod}), uuid)


def _base(gpu: Gpu, instance: MigInstance | None) -> dict[str, str]:
    named = {
        "gpu": str(gpu.index),
        "UUID": gpu.uuid,
        "pci_bus_id": _bus(gpu.place.address),
        "device": f"{gpu.vendor}{gpu.index}",
        "modelName": gpu.model,
    }
    if instance is not None:
        named |= {"GPU_I_PROFILE": instance.profile, "GPU_I_ID": str(instance.gpu_instance)}
    return named


def _bus(address: str) -> str:
    """Return a PCI address as NVML writes it: eight digits of domain, upper case."""
    domain, _, rest = address.partition(":")
    return f"{domain:0>8}:{rest}".upper()
