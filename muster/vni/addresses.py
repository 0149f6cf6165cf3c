"""Addresses of a job's pods in their network: one per pod, chosen by the leader.

An IPAM plugin on the node (host-local) knows its own pods only, so two nodes would give out the
same address. One with a store of its own (whereabouts) is one more system that may lag or leak. The
leader knows every member, so it chooses::

    rank 0 ─► .1    rank 1 ─► .2    …            the same address whenever the rank is the same
    rank taken (its predecessor is still leaving), or none ─► the lowest free one

The taken addresses are read from the pods, so nothing has to be stored or cleaned up.
"""

from collections.abc import Container
from ipaddress import IPv4Network, IPv6Network, ip_interface

Subnet = IPv4Network | IPv6Network


def capacity(subnet: Subnet) -> int:
    """Return how many pods a subnet has addresses for, without its first and IPv4's broadcast."""
    reserved = 2 if subnet.version == 4 else 1  # noqa: PLR2004  the protocol's number
    return max(0, subnet.num_addresses - reserved)


def slot(rank: int, taken: Container[int], subnet: Subnet) -> int | None:
    """Return the place of a pod: its rank, else the lowest free one; None: the subnet is full."""
    room = capacity(subnet)
    if 0 <= rank < room and rank not in taken:
        return rank
    return next((place for place in range(room) if place not in taken), None)


def address(subnet: Subnet, place: int) -> str:
    """Return the address of a place with its prefix length, as CNI wants it: 198.18.0.1/15."""
    return f"{subnet[place + 1]}/{subnet.prefixlen}"


def place_of(subnet: Subnet, text: str) -> int | None:
    """Return the place of an address, None for one outside the subnet."""
    try:
        found = ip_interface(text).ip
    except ValueError:
        return None
    if found.version != subnet.version or found not in subnet:
        return None
    place = int(found) - int(subnet.network_address) - 1
    return place if 0 <= place < capacity(subnet) else None
