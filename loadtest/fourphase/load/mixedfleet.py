"""A fleet as it grows over the years: several GPU generations side by side, each as it is built.

::

    zone ─┬─ block (a scalable unit of one model) ─┬─ rack ── hosts
          │                                        └─ rack ── hosts  (GB200: one NVLink domain)
          └─ block …

Shapes are those of the vendor's reference architectures; which share of the hosts each model has
is ours, a round guess at a fleet that bought every generation. Blocks are dealt to the zones in
turn, from a zone that the seed draws; in every twentieth place of a rack, by the seed, stands
nothing, as machines are away for repair.
"""

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loadtest.fourphase.load.pools import divided
from loadtest.traces.fleet import NVLINK, Fleet, Host
from muster.kube import names

ZONES: Final = ("zone-a", "zone-b", "zone-c")
LEVELS: Final = (names.ZONE, names.BLOCK, names.RACK, NVLINK, names.HOST)
FEWEST_HOSTS: Final = 40  # below that a model of a tenth has fewer than four hosts
MISSING: Final = 0.05  # share of a rack's places without a host
SOURCE: Final = (
    "hosts, racks and blocks after NVIDIA's DGX SuperPOD reference architectures (H100, A100, "
    "GB200) and a PCIe server for L40S; shares of the hosts and missing hosts are ours"
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One GPU model of the fleet."""

    #: Its name as GPU feature discovery writes it.
    model: str
    name: str
    #: Percent of the hosts.
    share: int
    gpus: int
    #: Hosts of a full one.
    rack: int
    #: Hosts of a full one.
    block: int
    millicpu: int
    memory_mib: int
    #: Whether NVLink joins the hosts of a rack.
    nvlink: bool = False


_GIB: Final = 1024
KINDS: Final = (
    # DGX H100: 8 GPUs, 2 times 56 cores, 2 TiB; a scalable unit is 32 systems, four in a rack.
    Kind("NVIDIA-H100-80GB-HBM3", "h100", 50, 8, 4, 32, 224_000, 2048 * _GIB),
    # DGX A100 (640 GB): 8 GPUs, 2 times 64 cores, 2 TiB; a scalable unit is 20 systems.
    Kind("NVIDIA-A100-SXM4-80GB", "a100", 25, 8, 4, 20, 256_000, 2048 * _GIB),
    # GB200 NVL72: 18 trays of 4 GPUs and 2 times 72 cores, one NVLink domain; a unit is 8 racks.
    Kind("NVIDIA-GB200", "gb200", 15, 4, 18, 144, 144_000, 960 * _GIB, nvlink=True),
    # Ours: inference servers with 4 PCIe cards, eight in a rack.
    Kind("NVIDIA-L40S", "l40s", 10, 4, 8, 64, 64_000, 512 * _GIB),
)


def mixed(hosts: int, *, seed: int = 0) -> Fleet:
    """Generate ``hosts`` hosts, the models in the shares of ``KINDS``."""
    chance = random.Random(f"{seed}/mixed")
    turn = chance.randrange(len(ZONES))
    made: list[Host] = []
    for kind, count in zip(KINDS, divided(hosts, [kind.share for kind in KINDS]), strict=True):
        blocks = list(_blocks(kind, count, chance))
        for number, block in enumerate(blocks):
            zone = ZONES[(turn + number) % len(ZONES)]
            made += _block(kind, f"{kind.name}-{number + 1:02d}", zone, block, chance)
        turn += len(blocks)
    made.sort(key=lambda host: ZONES.index(host.zone))  # stable: blocks and racks stay together
    return Fleet("four GPU models in three zones", tuple(made), SOURCE, LEVELS)


def _blocks(kind: Kind, hosts: int, chance: random.Random) -> Iterator[list[int]]:
    """Yield the hosts in each rack of one block after the other, until all are placed."""
    while hosts:
        block: list[int] = []
        for _ in range(kind.block // kind.rack):
            there = sum(chance.random() >= MISSING for _ in range(kind.rack))
            size = min(max(1, there), hosts)
            if size:
                block.append(size)
            hosts -= size
        yield block


def _block(
    kind: Kind, block: str, zone: str, racks: list[int], chance: random.Random
) -> Iterator[Host]:
    for number, size in enumerate(racks, start=1):
        rack = f"{block}-r{number:02d}"
        # The label's value is the fabric's UUID and the number of the clique in it.
        clique = f"{uuid.UUID(int=chance.getrandbits(128))}.1" if kind.nvlink else ""
        for place in range(1, size + 1):
            yield Host(
                f"{rack}-h{place:02d}",
                zone,
                block,
                rack,
                kind.gpus,
                kind.model,
                clique,
                kind.millicpu,
                kind.memory_mib,
            )
