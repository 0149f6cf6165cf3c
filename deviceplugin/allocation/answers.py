"""What a container gets with its devices: CDI names, variables, mounts, device files.

::

    resource, ids ──► devices ──┬─► NVIDIA's GPUs   by the strategies: CDI names, variable,
                                │                   mounts, device files
                                ├─► AMD's, NICs     CDI names, device files
                                └─► shares          MPS pipes; memory limits

The kubelet joins the variables of all resources of a container, in random order, and skips a
variable that it has already; so no two resources may set one variable to different values. The
pod's own variables come after them (pkg/kubelet/kubelet_pods.go) and win: a user's NCCL_IB_HCA is
never overridden. Pure: the same ids always give the same answer.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final

import msgspec

from deviceplugin.allocation.settings import AllocationSettings
from deviceplugin.cdi.specs import AMD, NVIDIA, RDMA, qualified, shared_files
from deviceplugin.model.answers import ContainerAnswer, DeviceFile, Mount
from deviceplugin.model.inventory import Gpu, Inventory, Vendor
from deviceplugin.resources.advertisements import (
    Advertised,
    AdvertisedDevice,
    AdvertisedKind,
    Advertisement,
    PciFunctions,
    SharingMode,
)

VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"
VOLUMES: Final = "/var/run/nvidia-container-devices"  # nvidia-container-toolkit, volume-mounts
VOID: Final = "void"  # no GPU by this variable; it overrides an image's own "all"
GPUS: Final = "MUSTER_GPUS"
NICS: Final = "MUSTER_NICS"
_NO_VARIABLE: Final = re.compile(r"[^A-Z0-9_]")
_CDI_PLUGIN: Final = "muster-device-plugin"
_DIGITS: Final = 16  # of a digest; a key has at most 63 characters after its prefix
_MPS: Final = "/mps"  # NVIDIA/k8s-device-plugin cmd/mps-control-daemon/mps/root.go
_VHOST_KEYS: Final = ("net-mount", "tun-mount")
_SHM: Final = "/dev/shm"  # noqa: S108  # where CUDA looks for the daemon's shared memory


class ContainerAnswers:
    """A ``deviceplugin.handshake.handshake.AnswerMaker`` on one node."""

    def __init__(self, settings: AllocationSettings) -> None:
        self._settings = settings
        self._advertisement = Advertisement()
        self._inventory = Inventory()
        self._gpus: Mapping[str, Gpu] = {}

    def see(self, inventory: Inventory, advertisement: Advertisement) -> None:
        """Take in what the node has."""
        self._inventory, self._advertisement = inventory, advertisement
        self._gpus = {gpu.uuid: gpu for gpu in inventory.gpus}

    def give(self, resource: str, ids: tuple[str, ...]) -> ContainerAnswer:
        """Return what a container gets. Raises ``AllocationRefused`` for ids it may not have."""
        found = self._advertisement.of(resource)
        if found is None:
            return ContainerAnswer()
        devices = sorted(found.asked(ids), key=list(found.devices).index)
        if found.kind is AdvertisedKind.NIC:
            return self._functions(found, devices) if found.functions else self._nics(devices)
        if all(self._vendor(device) is Vendor.AMD for device in devices):
            return self._amd(devices)
        return self._nvidia(found, devices)

    # --- NVIDIA -----------------------------------------------------------------------------

    def _nvidia(self, found: Advertised, devices: Sequence[AdvertisedDevice]) -> ContainerAnswer:
        names = tuple(dict.fromkeys(device.device for device in devices))
        envs = {GPUS: ",".join(names), **self._settings.features}
        mounts: list[Mount] = []
        strategies = self._settings.strategies
        if "volume-mounts" in strategies:
            envs[VISIBLE] = VOLUMES
            mounts += [Mount(f"{VOLUMES}/{name}", "/dev/null") for name in names]
        elif "envvar" in strategies:
            envs[VISIBLE] = ",".join(names)
        elif "device-specs" in strategies:
            envs[VISIBLE] = VOID
        if found.sharing is SharingMode.MPS:
            envs["CUDA_MPS_PIPE_DIRECTORY"] = f"{_MPS}/{found.resource}/pipe"
            mounts += self._mps(found.resource)
        if found.sharing is SharingMode.MEMORY:
            envs |= _limits(found, devices, self._gpus)
        if self._settings.nccl_topology_file:
            file = self._settings.nccl_topology_file
            envs["NCCL_TOPO_FILE"] = file
            mounts.append(Mount(file, file))
        files = self._nvidia_files(devices) if self._settings.gives_files else ()
        answer = ContainerAnswer(envs=envs, mounts=tuple(mounts), files=files)
        return self._by_cdi(answer, [qualified(NVIDIA, name) for name in names])

    def _by_cdi(self, answer: ContainerAnswer, names: Sequence[str]) -> ContainerAnswer:
        """Return the answer with CDI names where a strategy has them.

        The annotation's key is that of ``UpdateAnnotations`` (container-device-interface pkg/cdi),
        with a digest of the names where NVIDIA's plugin has a random one, since a container has
        one for each of its resources.
        """
        strategies = self._settings.strategies
        if "cdi-cri" in strategies:
            answer = replace(answer, cdi=tuple(names))
        if "cdi-annotations" in strategies:
            text = ",".join(names)
            number = sha256(text.encode()).hexdigest()[:_DIGITS]
            key = f"{self._settings.cdi_annotation_prefix}{_CDI_PLUGIN}_{number}"
            answer = replace(answer, annotations={key: text})
        return answer

    def _nvidia_files(self, devices: Iterable[AdvertisedDevice]) -> tuple[DeviceFile, ...]:
        paths = [path for device in devices for path in self._files_of(device)]
        return _files((*shared_files(self._inventory, Vendor.NVIDIA), *paths))

    def _files_of(self, device: AdvertisedDevice) -> Iterator[str]:
        for parent in device.parents:
            gpu = self._gpus.get(parent)
            if gpu is None:
                continue
            yield from gpu.files
            for one in gpu.mig.instances if gpu.mig is not None else ():
                if one.uuid == device.device:
                    yield from one.files

    def _mps(self, resource: str) -> tuple[Mount, ...]:
        root = self._settings.mps_root
        return (
            Mount(f"{_MPS}/{resource}/pipe", f"{root}/{resource}/pipe", read_only=False),
            Mount(_SHM, f"{root}/shm", read_only=False),
        )

    # --- others -----------------------------------------------------------------------------

    def _amd(self, devices: Sequence[AdvertisedDevice]) -> ContainerAnswer:
        names = tuple(dict.fromkeys(device.device for device in devices))
        envs = {GPUS: ",".join(names)}
        if self._settings.by_cdi:
            return self._by_cdi(
                ContainerAnswer(envs=envs), [qualified(AMD, name) for name in names]
            )
        paths = [path for device in devices for path in self._files_of(device)]
        shared = shared_files(self._inventory, Vendor.AMD)
        return ContainerAnswer(envs=envs, files=_files((*shared, *paths)))

    def _nics(self, devices: Sequence[AdvertisedDevice]) -> ContainerAnswer:
        """Return the answer for NICs; an id of a pool stands for all NICs of the pool."""
        names = tuple(dict.fromkeys(name for device in devices for name in device.parents))
        envs = {NICS: ",".join(names)}
        if self._settings.nccl_hcas:
            envs["NCCL_IB_HCA"] = "=" + ",".join(names)  # "=": these and no longer names
        if self._settings.by_cdi:
            return self._by_cdi(
                ContainerAnswer(envs=envs), [qualified(RDMA, name) for name in names]
            )
        paths = [file for nic in self._inventory.nics if nic.name in names for file in nic.files]
        return ContainerAnswer(envs=envs, files=_files((*self._inventory.rdma_files, *paths)))

    def _functions(self, found: Advertised, devices: Sequence[AdvertisedDevice]) -> ContainerAnswer:
        """Return the answer for PCI functions, with the variables of the SR-IOV plugin.

        ``PCIDEVICE_<RESOURCE>`` lists the addresses, ``…_INFO`` is JSON about each
        (k8snetworkplumbingwg/sriov-network-device-plugin pkg/resources/pool_stub.go, ``GetEnvs``).
        """
        functions = found.functions or PciFunctions()
        answer = self._nics(devices) if functions.rdma else ContainerAnswer()
        virtio = [file for each in devices if (file := self._vdpa_file(functions, each))]
        files = tuple(DeviceFile(file, file, "rwm") for file in virtio)
        if functions.vhost_net:
            files += _files(self._inventory.vhost_files)
        name = "PCIDEVICE_" + _NO_VARIABLE.sub("_", found.resource.upper())
        info = {device.id: self._info(functions, device) for device in devices}
        envs = {
            name: ",".join(device.id for device in devices),
            f"{name}_INFO": msgspec.json.encode(info).decode(),
        }
        return replace(answer, envs={**answer.envs, **envs}, files=(*answer.files, *files))

    def _vdpa_file(self, functions: PciFunctions, device: AdvertisedDevice) -> str:
        """Return the char device of a function's vDPA device, "" where it is not to be given."""
        found = (nic.vdpa for nic in self._inventory.nics if nic.name == device.device)
        virtio = next(found, None)
        return "" if virtio is None or virtio.kind not in functions.vdpa else virtio.file

    def _info(
        self, functions: PciFunctions, device: AdvertisedDevice
    ) -> dict[str, Mapping[str, str]]:
        info: dict[str, Mapping[str, str]] = {"generic": {"deviceID": device.id}}
        extra = {**functions.extra.get("*", {}), **functions.extra.get(device.id, {})}
        if extra:
            info["extra"] = extra
        if functions.rdma:
            nics = [nic for nic in self._inventory.nics if nic.name == device.device]
            files = [*self._inventory.rdma_files, *(f for nic in nics for f in nic.files)]
            info["rdma"] = {_kind_of(file): file for file in files}
        if virtio := self._vdpa_file(functions, device):
            info["vdpa"] = {"mount": virtio}
        if functions.vhost_net and self._inventory.vhost_files:
            info["vhost"] = dict(zip(_VHOST_KEYS, self._inventory.vhost_files, strict=True))
        return info

    def _vendor(self, device: AdvertisedDevice) -> Vendor:
        found = (self._gpus[name].vendor for name in device.parents if name in self._gpus)
        return next(found, Vendor.NVIDIA)


def _kind_of(file: str) -> str:
    """Return "uverbs" of /dev/infiniband/uverbs0."""
    return file.rpartition("/")[2].rstrip("0123456789")


def _files(paths: Iterable[str]) -> tuple[DeviceFile, ...]:
    return tuple(DeviceFile(path, path) for path in dict.fromkeys(paths))


def _limits(
    found: Advertised, devices: Sequence[AdvertisedDevice], gpus: Mapping[str, Gpu]
) -> dict[str, str]:
    """Return how much memory of each GPU a container may use, in MiB.

    The libraries of HAMi and Alibaba (gpushare-device-plugin pkg/gpu/nvidia/const.go) read these
    variables and enforce the limits; nothing else does.
    """
    units: dict[str, int] = {}
    for device in devices:
        units[device.device] = units.get(device.device, 0) + 1
    envs = {
        f"CUDA_DEVICE_MEMORY_LIMIT_{place}": f"{many * found.unit_mib}m"
        for place, many in enumerate(units.values())
    }
    if found.resource == "aliyun.com/gpu-mem" and len(units) == 1:
        uuid, many = next(iter(units.items()))
        gpu = gpus.get(uuid)
        envs["ALIYUN_COM_GPU_MEM_CONTAINER"] = str(many)
        if gpu is not None and found.unit_mib:
            envs["ALIYUN_COM_GPU_MEM_DEV"] = str(gpu.memory_mib // found.unit_mib)
            envs["ALIYUN_COM_GPU_MEM_IDX"] = str(gpu.index)
    return envs
