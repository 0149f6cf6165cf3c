"""The fleets by name, each of exactly so many hosts, the same for the same seed.

=========  ================================================================================
grid       racks of 16, blocks of 512, hosts of 8 GPUs: nothing but the number of hosts
mixed      several GPU models, zones, and NVLink domains over hosts (``mixedfleet``)
lingjun    a real Clos of 847 hosts, cut leaf by leaf, or repeated zone by zone
openb      the machines of a real cluster, 1,523 with 0 to 8 GPUs, drawn in proportion
=========  ================================================================================
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from loadtest.fourphase.load import mixedfleet
from loadtest.fourphase.load.pools import divided
from loadtest.fourphase.site.site import RACK, fleet
from loadtest.traces import openb
from loadtest.traces.fleet import Fleet, FleetError, Host, read_topology
from loadtest.traces.publisheddata import located

LINGJUN: Final = Path("lingjun_topo/topo.csv")
OPENB_MACHINES: Final = Path("openb/csv/openb_node_list_all_node.csv")
LINGJUN_SOURCE: Final = (
    "Alibaba, alibaba-lingjun-dataset-2023, topo.csv (847 hosts; Crux, SIGCOMM 2024; Apache-2.0); "
    "GPUs per host are not in it: 8"
)
OPENB_SOURCE: Final = (
    "Alibaba, cluster-trace-gpu-v2023 (1,523 machines; Weng et al., USENIX ATC 2023; Apache-2.0); "
    "racks are not in it: 16 machines of one kind side by side"
)
GRID_SOURCE: Final = "generated: hosts of 8 GPUs in racks of 16 and blocks of 512"


def build(name: str, nodes: int, *, seed: int, data: Path) -> Fleet:
    """Return fleet ``name`` with ``nodes`` hosts; ``data``: the folder of the published ones.

    Raises ``DataMissingError``, ``FleetError`` and ``OpenbError`` in words.
    """
    return FLEETS[name](nodes, seed, data)


def _grid(nodes: int, seed: int, data: Path) -> Fleet:  # noqa: ARG001  one signature for all
    return replace(fleet(nodes), source=GRID_SOURCE)


def _mixed(nodes: int, seed: int, data: Path) -> Fleet:  # noqa: ARG001
    if nodes < mixedfleet.FEWEST_HOSTS:
        raise FleetError(
            f"--fleet mixed --nodes {nodes}: too few for every model to have hosts: give at "
            f"least {mixedfleet.FEWEST_HOSTS}"
        )
    return mixedfleet.mixed(nodes, seed=seed)


# ── lingjun ─────────────────────────────────────────────────────────────────────────────


def _lingjun(nodes: int, seed: int, data: Path) -> Fleet:
    whole = read_topology(located(data, LINGJUN, "--fleet lingjun"))
    copies, rest = divmod(nodes, len(whole.hosts))
    made = [host for copy in range(copies) for host in _copy(whole.hosts, copy)]
    made += _copy(tuple(_cut(whole, rest, random.Random(f"{seed}/lingjun"))), copies)
    title = f"a real Clos of {len(whole.hosts)} hosts"
    if nodes != len(whole.hosts):
        title += f", {nodes / len(whole.hosts):.4g} times"
    return Fleet(title, tuple(made), LINGJUN_SOURCE)


def _copy(hosts: tuple[Host, ...], number: int) -> Iterator[Host]:
    """Yield the hosts again in a zone of their own; the first copy keeps its names."""
    for host in hosts:
        if not number:
            yield host
            continue
        again = f"-{number + 1}"
        yield replace(
            host,
            name=host.name + again,
            zone=host.zone + again,
            block=host.block + again,
            rack=host.rack + again,
        )


def _cut(fleet: Fleet, nodes: int, chance: random.Random) -> Iterator[Host]:
    """Yield ``nodes`` hosts: of every block its share, in whole leaves that the seed draws.

    The last leaf of a block is cut so that the number is exact.
    """
    blocks = Counter(host.block for host in fleet.hosts)
    shares = dict(zip(blocks, divided(nodes, list(blocks.values())), strict=True))
    chosen: set[str] = set()
    for block, share in shares.items():
        leaves: dict[str, list[str]] = {}
        for host in fleet.hosts:
            if host.block == block:
                leaves.setdefault(host.rack, []).append(host.name)
        drawn = chance.sample(list(leaves), len(leaves))
        chosen.update([name for rack in drawn for name in leaves[rack]][:share])
    yield from (host for host in fleet.hosts if host.name in chosen)


# ── openb ───────────────────────────────────────────────────────────────────────────────


def _openb(nodes: int, seed: int, data: Path) -> Fleet:
    """Take of every kind of machine its share; kinds follow each other in an order drawn by seed.

    Kinds with a share of less than half a machine are left out in favour of the larger ones.
    """
    machines = openb.read_machines(located(data, OPENB_MACHINES, "--fleet openb"))
    kinds = Counter(machines)
    counts = dict(zip(kinds, _nearest(nodes, list(kinds.values())), strict=True))
    order = random.Random(f"{seed}/openb").sample(list(kinds), len(kinds))
    per_block = -(-nodes // 4 // RACK) * RACK if nodes < 4 * 512 else 512
    made: list[Host] = []
    for kind in order:
        for _ in range(counts[kind]):
            made.append(_machine(kind, len(made), per_block))
    return Fleet(f"machines of a real cluster of {len(machines):,}", tuple(made), OPENB_SOURCE)


def _nearest(total: int, weights: list[int]) -> list[int]:
    """Divide in proportion, the odd ones to the largest remainders; few of many stay exact."""
    whole = sum(weights)
    shares = [total * weight // whole for weight in weights]
    by_rest = sorted(range(len(weights)), key=lambda i: -(total * weights[i] % whole))
    for i in by_rest[: total - sum(shares)]:
        shares[i] += 1
    return shares


def _machine(kind: openb.Machine, index: int, per_block: int) -> Host:
    block, place = divmod(index, per_block)
    rack = f"b{block:02d}-r{place // RACK:02d}"
    return Host(
        f"{rack}-h{place % RACK:02d}",
        "zone-1",
        f"block-{block:02d}",
        rack,
        kind.gpus,
        kind.model,
        "",
        kind.cpu,
        kind.memory,
    )


FLEETS: Final[dict[str, Callable[[int, int, Path], Fleet]]] = {
    "grid": _grid,
    "mixed": _mixed,
    "lingjun": _lingjun,
    "openb": _openb,
}
