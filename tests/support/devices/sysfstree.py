"""A /sys laid out in a folder: PCI devices, RDMA devices, AMD GPUs with their KFD topology.

Links are relative, as the kernel's are, so that the folder can be anywhere.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

XGMI, PCIE = 11, 2


class SysfsTree:
    """Below ``root``, what stands below /sys."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{text}\n")
        return target

    def link(self, path: str, to: Path) -> None:
        source = self.root / path
        source.parent.mkdir(parents=True, exist_ok=True)
        source.symlink_to(os.path.relpath(to, source.parent))

    def pci(
        self, above: str, address: str, *, numa: int, vendor: str, device: str, driver: str
    ) -> Path:
        """A PCI device below ``above`` ("pci0000:15/0000:15:01.0")."""
        folder = f"devices/{above}/{address}"
        self.write(f"{folder}/numa_node", str(numa))
        self.write(f"{folder}/vendor", f"0x{vendor}")
        self.write(f"{folder}/device", f"0x{device}")
        target = self.root / "bus/pci/drivers" / driver
        target.mkdir(parents=True, exist_ok=True)
        self.link(f"{folder}/driver", target)
        self.link(f"bus/pci/devices/{address}", self.root / folder)
        self.link(f"bus/pci/drivers/{driver}/{address}", self.root / folder)
        return self.root / folder

    def remove(self, path: str) -> None:
        target = self.root / path
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink()

    # --- RDMA -----------------------------------------------------------------------------

    def nic(
        self,
        name: str,
        address: str,
        *,
        above: str = "pci0000:15/0000:15:01.0",
        numa: int = 0,
        ports: Mapping[int, str] | None = None,
        interfaces: Sequence[str] = ("ib0",),
        layer: str = "InfiniBand",
        physical: str = "",
    ) -> None:
        """A ConnectX-7; ``ports``: number → state ("4: ACTIVE")."""
        device = self.pci(
            above, address, numa=numa, vendor="15b3", device="1021", driver="mlx5_core"
        )
        number = name.rpartition("_")[2]
        folder = f"class/infiniband/{name}"
        self.link(f"{folder}/device", device)
        self.write(f"{folder}/hca_type", "MT4129")
        self.write(f"{folder}/fw_ver", "28.39.2048")
        self.write(f"{folder}/node_guid", "a088:c203:00ab:0001")
        for port, state in (ports or {1: "4: ACTIVE"}).items():
            self.write(f"{folder}/ports/{port}/state", state)
            self.write(f"{folder}/ports/{port}/link_layer", layer)
            self.write(f"{folder}/ports/{port}/rate", "400 Gb/sec (4X NDR)")
        for interface in interfaces:
            (device / "net" / interface).mkdir(parents=True, exist_ok=True)
        if physical:
            target = self.root / "bus/pci/devices" / physical
            self.link(os.path.relpath(device / "physfn", self.root), target.resolve())
        self.write(f"class/infiniband_verbs/uverbs{number}/ibdev", name)
        self.write(f"class/infiniband_mad/umad{number}/ibdev", name)
        self.write(f"class/infiniband_mad/issm{number}/ibdev", name)
        self.write("class/infiniband_verbs/abi_version", "6")

    def vdpa(self, name: str, address: str, driver: str, child: str) -> None:
        """A vDPA device of a function, with what its driver puts below it."""
        folder = (self.root / "bus/pci/devices" / address).resolve() / name
        (folder / child).mkdir(parents=True)
        bound = self.root / "bus/vdpa/drivers" / driver
        bound.mkdir(parents=True, exist_ok=True)
        self.link(os.path.relpath(folder / "driver", self.root), bound)
        self.link(f"bus/vdpa/devices/{name}", folder)

    def port(self, name: str, number: int, state: str) -> None:
        self.write(f"class/infiniband/{name}/ports/{number}/state", state)

    def generation(self, number: int) -> None:
        """The KFD has changed its topology so often."""
        self.write("class/kfd/kfd/topology/generation_id", str(number))

    # --- AMD ------------------------------------------------------------------------------

    def cpu(self, node: int) -> None:
        folder = f"class/kfd/kfd/topology/nodes/{node}"
        self.write(f"{folder}/gpu_id", "0")
        self.write(f"{folder}/properties", "cpu_cores_count 96\nsimd_count 0\ndrm_render_minor 0")

    def amd(
        self,
        node: int,
        address: str,
        *,
        unique_id: int,
        minor: int,
        above: str = "pci0000:00/0000:00:01.1",
        numa: int = 0,
        links: Mapping[int, int] | None = None,
        partition: tuple[str, str] = ("SPX", "NPS1"),
        product: str = "",
    ) -> Path:
        """An MI300X; ``links``: other node → type of link."""
        self.kfd(node, address, unique_id=unique_id, minor=minor, links=links)
        device = self.pci(above, address, numa=numa, vendor="1002", device="74a1", driver="amdgpu")
        here = os.path.relpath(device, self.root)
        for name, value in {
            "class": "0x120000",
            "mem_info_vram_total": "206141652992",
            "mem_info_vram_used": "1048576000",
            "gpu_busy_percent": "17",
            "current_compute_partition": partition[0],
            "current_memory_partition": partition[1],
            "hwmon/hwmon4/temp1_input": "41000",
            "hwmon/hwmon4/temp2_input": "47000",
            "hwmon/hwmon4/temp2_crit": "100000",
            "hwmon/hwmon4/power1_average": "135500000",
            "hwmon/hwmon4/power1_cap": "750000000",
            "hwmon/hwmon4/freq1_input": "132000000",
            "ras/umc_err_count": "ue: 0\nce: 3",
        }.items():
            self.write(f"{here}/{name}", value)
        if product:
            self.write(f"{here}/product_name", product)
        (device / f"drm/card{minor - 127}").mkdir(parents=True)
        (device / f"drm/renderD{minor}").mkdir(parents=True)
        self.link(f"class/drm/renderD{minor}/device", device)
        return device

    def kfd(
        self,
        node: int,
        address: str,
        *,
        unique_id: int,
        minor: int,
        links: Mapping[int, int] | None = None,
        memory: int = 206141652992,
    ) -> None:
        """A node of the KFD topology."""
        domain, bus, last = address.split(":")
        device, function = last.split(".")
        location = int(bus, 16) << 8 | int(device, 16) << 3 | int(function)
        folder = f"class/kfd/kfd/topology/nodes/{node}"
        self.write(f"{folder}/gpu_id", str(1000 + node))
        self.write(
            f"{folder}/properties",
            f"simd_count 1216\nvendor_id 4098\ndevice_id 29857\nlocation_id {location}\n"
            f"domain {int(domain, 16)}\ndrm_render_minor {minor}\nunique_id {unique_id}",
        )
        self.write(f"{folder}/mem_banks/0/properties", f"heap_type 1\nsize_in_bytes {memory}")
        for number, (other, kind) in enumerate((links or {}).items()):
            text = f"type {kind}\nnode_from {node}\nnode_to {other}\nweight 15"
            self.write(f"{folder}/io_links/{number}/properties", text)
