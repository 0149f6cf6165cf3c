"""Pools of VNIs: which may be used, and which exclude each other.

A VNI numbers one network of the whole underlay, so no two pools may have one in common, and
none may be in the share that a pool leaves to the federation of clusters::

    1      999 1000        2000            4095                       16777215
    ├───────┤  ├─────────────┤               │                              │
    federation  range: jobs of this cluster  └ the federation's shares end  └ 24 bits (RFC 7348)

If two pools overlap, only the older one is used until the other one is corrected, so that a mistake
in a second pool never disturbs the jobs of the first.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final

from muster.vni.addresses import Subnet, capacity

FIRST: Final = 1
LAST: Final = (1 << 24) - 1  # RFC 7348, section 5: the VNI has 24 bits; 0 is left out
LAST_FEDERATED: Final = 4095
HEADER_V4: Final = 50
"""What VXLAN adds over IPv4: 14 inner Ethernet, 8 VXLAN, 8 UDP and 20 IP (RFC 7348, 4.3)."""
HEADER_V6: Final = 70  # with the 40 octets of an IPv6 header in place of 20
SMALLEST_MTU: Final = 1280  # RFC 8200, section 5: the least that IPv6 works with


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """A range of VNIs."""

    #: Included.
    first: int
    #: Included.
    last: int

    def __len__(self) -> int:
        return max(0, self.last - self.first + 1)

    def __contains__(self, vni: object) -> bool:
        return isinstance(vni, int) and self.first <= vni <= self.last

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"

    def meets(self, other: "Range") -> bool:
        """Return whether the two have a VNI in common."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class JobNetworkPool:
    """One pool of VNIs."""

    name: str
    #: The VNIs that jobs of this cluster are given.
    range: Range
    #: The VNIs that no job of this cluster is given, ``None`` for none.
    federation: Range | None = None
    #: Subnet of each network of the pool; all have the same, since networks are isolated.
    subnet: str = "198.18.0.0/15"
    #: MTU of its networks, 0: what the nodes' underlay leaves.
    mtu: int = 0
    #: UDP port of VXLAN.
    port: int = 4789
    #: When it was created, as text that sorts by time.
    made: str = ""

    def network(self) -> Subnet:
        """Return the subnet; it must have passed ``problems``."""
        return ip_network(self.subnet)


def problems(pool: JobNetworkPool) -> Iterator[str]:
    """Yield what is wrong with a pool alone: field, value, what is allowed."""
    yield from _range_problems("spec.range", pool.range, LAST)
    if pool.federation is not None:
        yield from _range_problems("spec.federation", pool.federation, LAST_FEDERATED)
        if pool.federation.meets(pool.range):
            yield (
                f"spec.federation {pool.federation} overlaps with spec.range {pool.range}: "
                "leave a VNI to one of them"
            )
    try:
        room = capacity(ip_network(pool.subnet))
    except ValueError as error:
        yield f"spec.subnet {pool.subnet!r}: {error}; for example 198.18.0.0/15"
    else:
        if not room:
            yield f"spec.subnet {pool.subnet}: has no address for a pod; take a larger one"
    if pool.mtu and pool.mtu < SMALLEST_MTU:
        yield f"spec.mtu {pool.mtu}: allowed is {SMALLEST_MTU} and more, or none"


def _range_problems(field: str, found: Range, last: int) -> Iterator[str]:
    if not FIRST <= found.first <= found.last <= last:
        yield f"{field} {found}: allowed are {FIRST} to {last}, the first not above the last"


def judge(pools: Iterable[JobNetworkPool]) -> dict[str, str]:
    """Return pool → why it is not used, "" for one that is used; older pools win."""
    found: dict[str, str] = {}
    used: list[JobNetworkPool] = []
    for pool in sorted(pools, key=lambda pool: (pool.made, pool.name)):
        mine = next(problems(pool), "")
        found[pool.name] = mine or next(filter(None, (_clash(pool, other) for other in used)), "")
        if not found[pool.name]:
            used.append(pool)
    return found


def _clash(pool: JobNetworkPool, older: JobNetworkPool) -> str:
    """Return how a pool overlaps with an older one, "": not. Federation shares may be equal."""
    pairs = (
        ("spec.range", pool.range, "range", older.range),
        ("spec.range", pool.range, "federation", older.federation),
        ("spec.federation", pool.federation, "range", older.range),
    )
    for field, mine, theirs, other in pairs:
        if mine is not None and other is not None and mine.meets(other):
            return f"{field} {mine} overlaps with the {theirs} {other} of pool {older.name}"
    return ""


def inner_mtu(underlay: int, *, v6: bool = False) -> int:
    """Return the MTU of a job's packets, in octets, over an underlay with this MTU."""
    return underlay - (HEADER_V6 if v6 else HEADER_V4)
