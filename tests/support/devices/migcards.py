"""GPUs that can be cut, with the profiles of real cards (mig.yaml has the sources)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache

from deviceplugin.backends.simulated import mig as simulatedmig
from deviceplugin.mig.placing import InstanceSlot, mask
from deviceplugin.model.inventory import Gpu, GpuMig, GpuMigProfile, MigInstance, PciPlace

# Product, MiB, and the instances that mig-parted's layouts make of each profile
# (NVIDIA/mig-parted, deployments/systemd/config-default.yaml).
CARDS: dict[str, tuple[str, int, Mapping[str, int]]] = {
    "A100-40": (
        "NVIDIA A100-SXM4-40GB",
        40960,
        {
            "1g.5gb": 7,
            "1g.5gb+me": 1,
            "1g.10gb": 4,
            "2g.10gb": 3,
            "3g.20gb": 2,
            "4g.20gb": 1,
            "7g.40gb": 1,
        },
    ),
    "H100-80": (
        "NVIDIA H100 80GB HBM3",
        81559,
        {
            "1g.10gb": 7,
            "1g.10gb+me": 1,
            "1g.20gb": 4,
            "2g.20gb": 3,
            "3g.40gb": 2,
            "4g.40gb": 1,
            "7g.80gb": 1,
        },
    ),
    "H200": (
        "NVIDIA H200",
        143771,
        {
            "1g.18gb": 7,
            "1g.18gb+me": 1,
            "1g.35gb": 4,
            "2g.35gb": 3,
            "3g.71gb": 2,
            "4g.71gb": 1,
            "7g.141gb": 1,
        },
    ),
    "A30": (
        "NVIDIA A30",
        24576,
        {"1g.6gb": 4, "1g.6gb+me": 1, "2g.12gb": 2, "2g.12gb+me": 1, "4g.24gb": 1},
    ),
}


@cache
def profiles(card: str) -> tuple[GpuMigProfile, ...]:
    """Return what a card can be cut into."""
    product, memory, _ = CARDS[card]
    return simulatedmig.profiles(product, memory)


def gpu(card: str, *standing: str, index: int = 0, enabled: bool = True) -> Gpu:
    """Return a GPU with instances, each written PROFILE@START."""
    product, memory, _ = CARDS[card]
    known = {profile.name: profile for profile in profiles(card)}
    slots = simulatedmig.slots(standing)
    instances = (
        MigInstance(f"MIG-{index}-{name}@{start}", name, start, known[name].size, number)
        for number, (name, start) in enumerate(slots)
    )
    return Gpu(
        uuid=f"GPU-{index}",
        model=product,
        memory_mib=memory,
        place=PciPlace(f"0000:{index:02x}:00.0"),
        index=index,
        mig=GpuMig(enabled, enabled, profiles(card), tuple(instances)),
    )


def untold(of: Gpu) -> Gpu:
    """Return a GPU with a driver that lists places only once MIG is on."""
    assert of.mig is not None
    _, _, most = next(card for card in CARDS.values() if card[0] == of.model)
    kinds = (replace(p, starts=(), size=0, most=most[p.name]) for p in of.mig.profiles)
    return replace(of, mig=replace(of.mig, profiles=tuple(kinds)))


@cache
def all_ways(
    card: str,
) -> Mapping[tuple[tuple[str, int], ...], tuple[frozenset[InstanceSlot], ...]]:
    """Return every way to cut a card, by how many of each profile: found by trying them all."""
    found: dict[tuple[tuple[str, int], ...], list[frozenset[InstanceSlot]]] = {}
    places = [
        (InstanceSlot(profile.name, start), mask(profile, start))
        for profile in profiles(card)
        for start in profile.starts
    ]
    for slots in _disjoint(places, 0):
        found.setdefault(counted(slots), []).append(slots)
    return {counts: tuple(ways) for counts, ways in found.items()}


def _disjoint(
    places: list[tuple[InstanceSlot, int]], taken: int
) -> Iterator[frozenset[InstanceSlot]]:
    yield frozenset()
    for position, (slot, bits) in enumerate(places):
        if not bits & taken:
            for more in _disjoint(places[position + 1 :], taken | bits):
                yield more | {slot}


def counted(slots: Iterable[InstanceSlot]) -> tuple[tuple[str, int], ...]:
    """Return how many of each profile there are."""
    names = [slot.profile for slot in slots]
    return tuple(sorted((name, names.count(name)) for name in set(names)))
