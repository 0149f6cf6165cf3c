"""Inventories to test with: small on purpose, so that a test can say the whole answer."""

from dataclasses import replace

from deviceplugin.model.inventory import (
    Driver,
    FabricState,
    Gpu,
    GpuMig,
    Inventory,
    MigInstance,
    Nic,
    NvlinkFabric,
    NvLinks,
    PciPlace,
    Port,
)

A100 = "NVIDIA A100-SXM4-40GB"
H100 = "NVIDIA H100 80GB HBM3"
GB200 = "NVIDIA GB200"
CLUSTER = "7b968a6d-c8aa-45e1-9e07-e1e51be99c31"
JOINED = NvlinkFabric(FabricState.COMPLETED, cluster=CLUSTER, clique=1)


def gpu(index: int, model: str = A100, **changes: object) -> Gpu:
    """Return a GPU under the switch of its pair: 0 and 1 share one, 2 and 3 the next."""
    pair = index // 2
    made = Gpu(
        uuid=f"GPU-{index:08d}",
        model=model,
        memory_mib=40960,
        place=PciPlace(
            f"0000:{0x10 + index:02x}:00.0",
            numa=pair % 2,
            path=(f"pci0000:{pair:02x}", f"0000:{pair:02x}:01.0", f"0000:{pair:02x}:10.{index}"),
        ),
        index=index,
        minor=index,
        compute=(8, 0),
        mig=GpuMig(),
        pci_class="0x030200",
        files=(f"/dev/nvidia{index}",),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def instance(number: int, profile: str = "1g.5gb", start: int = 0, size: int = 1) -> MigInstance:
    return MigInstance(
        uuid=f"MIG-{number:08d}",
        profile=profile,
        start=start,
        size=size,
        gpu_instance=number,
        memory_mib=4864,
        multiprocessors=14,
        compute_slices=int(profile[0]),
        engines={"copy": 1},
    )


def cut(index: int, *instances: MigInstance) -> Gpu:
    return gpu(index, mig=GpuMig(enabled=True, pending=True, instances=instances))


def nic(number: int, pair: int) -> Nic:
    """Return a NIC under the switch of a pair of GPUs."""
    return Nic(
        name=f"mlx5_{number}",
        place=PciPlace(
            f"0000:{0x40 + number:02x}:00.0",
            numa=pair % 2,
            path=(f"pci0000:{pair:02x}", f"0000:{pair:02x}:01.0", f"0000:{pair:02x}:11.{number}"),
        ),
        model="MT4129",
        ports=(Port(1, active=True, link_layer="InfiniBand", rate_gbps=400),),
        files=(f"/dev/infiniband/uverbs{number}",),
    )


def node(*gpus: Gpu, nics: tuple[Nic, ...] = (), links: NvLinks | None = None) -> Inventory:
    return Inventory(
        gpus=gpus,
        nics=nics,
        links=links or NvLinks(),
        driver=Driver("535.161.08", "12.2"),
        machine="DGXA100 920-23687-2530-000",
    )
