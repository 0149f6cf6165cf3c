"""A node for the handshake, and pods for it.

::

    pci0 ── switch A ── gpu0 gpu1 nic0        NUMA 0
    pci1 ── switch B ── gpu2 gpu3 nic1
    pci2 ── switch C ── gpu4 gpu5 nic2        NUMA 1
    pci3 ── switch D ── gpu6 gpu7 nic3

gpu0 … gpu5 are whole, gpu6 has four time slices, gpu7 is cut into three MIG instances.
"""

from collections.abc import Mapping, Sequence
from itertools import count

from deviceplugin.allocation.pairs import PairScores
from deviceplugin.allocation.picking import Picker
from deviceplugin.allocation.table import Table
from deviceplugin.allocation.values import (
    ContainerAsk,
    IdKind,
    IdStock,
    ListedDevices,
    NodePod,
    OfferedId,
    PodStage,
)
from deviceplugin.model.inventory import Gpu, Inventory, Nic, NvLinks, PciPlace

GPU, SHARED, MIG, HCA = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-2g", "rdma/hca"
GPUS = tuple(f"gpu{i}" for i in range(8))
NICS = tuple(f"nic{i}" for i in range(4))
WHOLE = GPUS[:6]


def place(switch: int, address: str) -> PciPlace:
    path = (f"pci000{switch}", f"000{switch}:01", f"000{switch}:02", f"down-{address}")
    return PciPlace(address, numa=switch // 2, path=path)


INVENTORY = Inventory(
    gpus=tuple(
        Gpu(name, "H100", 81920, place(i // 2, f"g{i}"), index=i) for i, name in enumerate(GPUS)
    ),
    nics=tuple(Nic(name, place(i, f"n{i}")) for i, name in enumerate(NICS)),
    links=NvLinks(to_switches=dict.fromkeys(GPUS, 18)),
)


def picker(inventory: Inventory = INVENTORY) -> Picker:
    return Picker(PairScores.of(inventory), {gpu.uuid: gpu for gpu in inventory.gpus})


def whole(
    resource: str, names: Sequence[str], *, ill: frozenset[str], nics: bool = False
) -> IdStock:
    offers = tuple(OfferedId(name, name, name, name not in ill) for name in names)
    return IdStock(resource, IdKind.WHOLE, offers, nics=nics)


def stocks(ill: frozenset[str] = frozenset()) -> list[IdStock]:
    """All resources of the node; ``ill``: parents that are not healthy."""
    shares = [OfferedId(f"gpu6::{n}", "gpu6", "gpu6", "gpu6" not in ill) for n in range(4)]
    places = [f"gpu7/2g.20gb@{start}" for start in (0, 2, 4)]
    cut = [OfferedId(f"MIG-{n}", "gpu7", name, "gpu7" not in ill) for n, name in enumerate(places)]
    return [
        whole(GPU, WHOLE, ill=ill),
        IdStock(SHARED, IdKind.REPLICA, tuple(shares)),
        IdStock(
            MIG, IdKind.MIG, tuple(cut), slices={n: 3 << (2 * i) for i, n in enumerate(places)}
        ),
        whole(HCA, NICS, ill=ill, nics=True),
    ]


def container(name: str, *, init: bool = False, **amounts: int) -> ContainerAsk:
    named = {"gpu": GPU, "shared": SHARED, "mig": MIG, "hca": HCA}
    return ContainerAsk(name, {named[key]: n for key, n in amounts.items()}, passes_on=init)


SHAPES: dict[str, tuple[ContainerAsk, ...]] = {
    "one": (container("main", gpu=1),),
    "two": (container("main", gpu=2),),
    "pair": (container("main", gpu=2, hca=1),),
    "four": (container("main", gpu=4, hca=2),),
    "split": (container("a", gpu=1, hca=1), container("b", gpu=1, hca=1)),
    "warm": (container("warm", init=True, gpu=2), container("main", gpu=2)),
    "first": (container("check", init=True, gpu=1), container("main", gpu=2, hca=1)),
    "heavy": (
        container("prepare", init=True, gpu=3),
        container("a", gpu=1),
        container("b", gpu=1),
    ),
    "share": (container("main", shared=1),),
    "shares": (container("main", shared=2),),
    "cut": (container("main", mig=1),),
}

_NUMBERS = count()


def pod(
    name: str,
    *containers: ContainerAsk,
    plan: Sequence[str] | None = None,
    batch: int | None = None,
    created: float = 0.0,
    life: PodStage = PodStage.WAITING,
    problem: str = "",
) -> NodePod:
    return NodePod(
        uid=f"uid-{name}",
        namespace="default",
        name=name,
        batch=next(_NUMBERS) if batch is None else batch,
        created=created,
        containers=containers or (container("main", gpu=2),),
        plan=None if plan is None else tuple(plan),
        problem=problem,
        life=life,
    )


def numa_of(stocked: Mapping[str, IdStock], node: int) -> frozenset[str]:
    """Return the ids of all resources on a NUMA node."""
    numa = {gpu.uuid: gpu.place.numa for gpu in INVENTORY.gpus}
    numa |= {nic.name: nic.place.numa for nic in INVENTORY.nics}
    return frozenset(
        offer.id for s in stocked.values() for offer in s.offers if numa[offer.parent] == node
    )


def table(*pods: NodePod, ill: Sequence[str] = ()) -> Table:
    made = Table()
    made.stock(stocks(frozenset(ill)), picker())
    for each in pods:
        made.pod(each)
    return made


def ask(found: Table, size: int, free: Sequence[str] = WHOLE, resource: str = GPU) -> list[str]:
    """Ask as a kubelet without topology hints; the answer is taken."""
    answer = found.preferred(resource, free, (), size)
    found.allocate(resource, answer)
    found.validate()
    return sorted(answer)


def listed(name: str, *ids: str, container: str = "main", resource: str = GPU) -> ListedDevices:
    return ListedDevices("default", name, container, resource, frozenset(ids))
