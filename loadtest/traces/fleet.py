"""Fleets of hosts: generated from published figures, or read from a published topology.

A fleet is a list of hosts with their place in the network; ``nodes`` turns it into API
objects. Everything drawn at random is drawn from the seed that is passed in.
"""

import csv
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.nodes import GPU, HOST_RESOURCES, node
from muster.kube import names

# Hosts below each aggregation switch of a Clos of 847 hosts in production (Alibaba, August
# 2023; the topology published with "Crux", SIGCOMM 2024). GPUs per host are not in it: 8.
CLOS_GROUPS: Final = (179, 306, 362)
# The same topology's leaf switches: hosts below one → how many such leaves there are.
CLOS_LEAVES: Final[Mapping[int, int]] = {8: 68, 7: 23, 6: 15, 5: 7, 4: 2, 3: 1, 2: 3}
GPUS_PER_HOST: Final = 8
# Labels of NVIDIA's GPU feature discovery; the last names a multi-node NVLink domain.
GPU_PRODUCT: Final = "nvidia.com/gpu.product"
GPU_COUNT: Final = "nvidia.com/gpu.count"
NVLINK: Final = "nvidia.com/gpu.clique"
FEWEST_HOSTS: Final = 10  # the smallest group still gets one leaf of two


class FleetError(Exception):
    """A topology file that cannot be used; the message names file, line and column."""


@dataclass(frozen=True, slots=True)
class Host:
    """One host and its domains, widest first."""

    name: str
    zone: str
    block: str
    rack: str
    gpus: int = GPUS_PER_HOST
    model: str = ""
    #: The domain in which NVLink joins hosts, if there is one.
    nvlink: str = ""
    millicpu: int = 192_000  # as HOST_RESOURCES
    memory_mib: int = 2048 * 1024


@dataclass(frozen=True, slots=True)
class Fleet:
    """Hosts in topology order, and where the figures come from."""

    title: str
    hosts: tuple[Host, ...]
    source: str = ""
    #: Node label keys.
    levels: tuple[str, ...] = names.DEFAULT_LEVELS

    @property
    def gpus(self) -> int:
        """GPUs of the whole fleet."""
        return sum(host.gpus for host in self.hosts)


def clos(hosts: int | None = None, *, seed: int = 0) -> Fleet:
    """Generate a three-layer Clos with the published shape, cut to about ``hosts`` hosts.

    Zone is the core switch group, block an aggregation group, rack a leaf.
    """
    total = sum(CLOS_GROUPS)
    wanted = total if hosts is None else hosts
    if wanted < FEWEST_HOSTS:
        raise FleetError(
            f"hosts: {wanted} is too few for three groups of leaves: give at least {FEWEST_HOSTS}"
        )
    chance = random.Random(seed)
    made: list[Host] = []
    for index, group in enumerate(_scaled(CLOS_GROUPS, wanted), start=1):
        for leaf, size in enumerate(_leaves(group, chance), start=1):
            rack = f"a{index}-leaf{leaf:02d}"
            made += [Host(f"{rack}-h{h}", "core", f"agg-{index}", rack) for h in range(1, size + 1)]
    return Fleet("Clos of published shape, generated", tuple(made))


def _scaled(groups: Sequence[int], wanted: int) -> list[int]:
    """Divide ``wanted`` hosts in the proportions of ``groups`` (largest remainders)."""
    total = sum(groups)
    exact = [group * wanted / total for group in groups]
    sizes = [int(share) for share in exact]
    by_rest = sorted(range(len(groups)), key=lambda i: sizes[i] - exact[i])
    for i in by_rest[: wanted - sum(sizes)]:
        sizes[i] += 1
    return sizes


def _leaves(hosts: int, chance: random.Random) -> list[int]:
    """Split a group into leaves of 2 to 8 hosts, drawn from the published sizes."""
    sizes, weights = list(CLOS_LEAVES), list(CLOS_LEAVES.values())
    leaves: list[int] = []
    while hosts:
        size = min(chance.choices(sizes, weights)[0], hosts)
        if hosts - size == 1:  # a leaf of one host does not exist: share with the last two
            size = size - 1 if size > 2 else hosts
        leaves.append(size)
        hosts -= size
    return leaves


def grid(hosts: int, *, zones: int = 1, blocks: int = 4, rack: int = 16, gpus: int = 8) -> Fleet:
    """Generate ``hosts`` hosts in racks of ``rack`` hosts, ``blocks`` blocks in each zone."""
    per_block = -(-hosts // (zones * blocks))
    made = []
    for i in range(hosts):
        block, place = divmod(i, per_block)
        zone = block // blocks
        name = f"z{zone}-b{block}-r{place // rack}"
        made.append(Host(f"{name}-h{place % rack}", f"zone-{zone}", f"block-{block}", name, gpus))
    return Fleet(f"{zones} zones, racks of {rack}", tuple(made))


def read_topology(path: Path, hosts: int | None = None) -> Fleet:
    """Read the CSV of a published Clos: columns ip, DSW (core), PSW (aggregation), ASW (leaf).

    A leaf's number is unique below its aggregation group only. ``hosts`` keeps whole
    leaves, taken in turn from all groups, until about that many hosts are reached.
    """
    rows = _rows(path, ("ip", "DSW", "PSW", "ASW"))
    by_leaf: dict[tuple[str, str, str], list[str]] = {}
    for row in sorted(rows, key=lambda r: (r["DSW"], r["PSW"], _number(r["ASW"]), r["ip"])):
        by_leaf.setdefault((row["DSW"], row["PSW"], row["ASW"]), []).append(row["ip"])
    chosen = _cut(by_leaf, hosts)
    made = [
        Host(f"{psw}-{asw}-h{i}".lower(), dsw, psw, f"{psw}-{asw}")
        for (dsw, psw, asw), leaf in chosen.items()
        for i, _ in enumerate(leaf, start=1)
    ]
    return Fleet(f"{path.name}: a real Clos", tuple(made))


def _number(text: str) -> int:
    digits = "".join(c for c in text if c.isdigit())
    return int(digits) if digits else 0


def _cut(
    leaves: dict[tuple[str, str, str], list[str]], hosts: int | None
) -> dict[tuple[str, str, str], list[str]]:
    total = sum(len(leaf) for leaf in leaves.values())
    if hosts is None or hosts >= total:
        return leaves
    groups = Counter(key[:2] for key in leaves)
    share = {group: max(1, round(count * hosts / total)) for group, count in groups.items()}
    chosen: dict[tuple[str, str, str], list[str]] = {}
    for key, leaf in leaves.items():
        if share[key[:2]]:
            share[key[:2]] -= 1
            chosen[key] = leaf
    return chosen


def _rows(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [c for c in columns if c not in (reader.fieldnames or ())]
            rows = list(reader)
    except OSError as error:
        raise FleetError(f"{path}: cannot be read: {error.strerror}") from error
    if missing or not rows:
        wanted = ",".join(columns)
        raise FleetError(f"{path}: no rows with the columns {wanted}: missing {missing or 'rows'}")
    return rows


def nodes(fleet: Fleet) -> Iterator[JSON]:
    """Yield the fleet as Ready v1 Nodes with labels for zone, block, rack, host and GPUs."""
    for host in fleet.hosts:
        resources = {
            **HOST_RESOURCES,
            "cpu": f"{host.millicpu}m",
            "memory": f"{host.memory_mib}Mi",
            GPU: str(host.gpus),
        }
        yield node(host.name, _labels(host), resources)


def _labels(host: Host) -> dict[str, str]:
    labels = {names.ZONE: host.zone, names.BLOCK: host.block, names.RACK: host.rack}
    if host.model:
        labels |= {GPU_PRODUCT: host.model, GPU_COUNT: str(host.gpus)}
    if host.nvlink:
        labels[NVLINK] = host.nvlink
    return labels
