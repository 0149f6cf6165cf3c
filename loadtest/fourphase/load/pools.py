"""What the pods of a load ask for, on hosts that are not all alike. Pure.

In the phases a pod takes a whole host. Where hosts differ, hosts of one model and one number
of GPUs are a *pool*: a gang belongs to one pool, its pods ask for all GPUs of such a host and
select the pool by the labels that GPU feature discovery writes, and the room is counted pool by
pool. So pods, hosts and shares of a pool stay the same thing::

    arrival of 100 pods ──► pools of 500, 300, 200 hosts ──► 50, 30, 20 pods ──► gangs of each

Hosts without GPUs are in no pool: the phases leave them idle. In a trace pods take parts of hosts;
there one pool holds every host, and its room is counted in GPUs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from loadtest.traces.fleet import GPU_COUNT, GPU_PRODUCT, GPUS_PER_HOST, NVLINK, Fleet, Host
from muster.kube import names

NEAR_HOSTS: Final = 16  # of a rack in the grid: larger gangs prefer a block


@dataclass(frozen=True, slots=True)
class Ask:
    """What each pod of a gang asks for."""

    gpus: int = GPUS_PER_HOST
    #: The pool that has room for it.
    pool: str = ""
    #: How many units of the pool's room it takes.
    room: int = 1
    #: Node labels it needs.
    selector: tuple[tuple[str, str], ...] = ()
    #: Any of these GPU models; empty: any model at all.
    models: tuple[str, ...] = ()
    millicpu: int = 1000
    memory_mib: int = 1024
    #: Gangs of up to so many pods prefer one domain of ``level``, larger ones prefer a block.
    near: int = NEAR_HOSTS
    level: str = names.RACK

    def on(self, host: Host) -> int:
        """Return how many of these pods an empty host takes."""
        labels = {GPU_PRODUCT: host.model, GPU_COUNT: str(host.gpus)}
        wrong = any(labels.get(key) != value for key, value in self.selector)
        if wrong or (self.models and host.model not in self.models):
            return 0
        fits = min(host.millicpu // self.millicpu, host.memory_mib // self.memory_mib)
        return min(fits, host.gpus // self.gpus) if self.gpus else fits


WHOLE_HOST: Final = Ask()


@dataclass(frozen=True, slots=True)
class Pool:
    """Hosts that the same pods may use."""

    ask: Ask
    #: Name → its units of room.
    hosts: Mapping[str, int] = field(repr=False)

    @property
    def name(self) -> str:
        """Return the pool's name, empty for the only one."""
        return self.ask.pool

    @property
    def room(self) -> int:
        """Return the room of all its hosts."""
        return sum(self.hosts.values())


def pools_of(fleet: Fleet) -> tuple[Pool, ...]:
    """Return the pools of a fleet's GPU hosts, in order of their first host."""
    kinds: dict[tuple[str, int], list[Host]] = {}
    for host in fleet.hosts:
        if host.gpus:
            kinds.setdefault((host.model, host.gpus), []).append(host)
    alone = len(kinds) == 1
    return tuple(
        Pool(_whole(hosts, alone=alone), {host.name: 1 for host in hosts})
        for hosts in kinds.values()
    )


def _whole(hosts: Sequence[Host], *, alone: bool) -> Ask:
    """Return the ask for a whole host of one kind; the only kind needs no selector."""
    first = hosts[0]
    domains = (host.nvlink or f"{host.block}/{host.rack}" for host in hosts)
    near = max(Counter(domains).values())
    level = NVLINK if first.nvlink else names.RACK
    if alone:
        return Ask(first.gpus, near=near, level=level)
    selector = ((GPU_PRODUCT, first.model), (GPU_COUNT, str(first.gpus)))
    name = f"{first.model} x{first.gpus}"
    return Ask(first.gpus, name, selector=selector, near=near, level=level)


def divided(total: int, weights: Sequence[int]) -> list[int]:
    """Divide a number in the proportions of ``weights``, rounded down; the rest to the largest.

    A small share never gets more than its part while a larger one can take the odd unit: a pool
    of three hosts must not be asked for a fourth.
    """
    whole = sum(weights)
    shares = [total * weight // whole for weight in weights]
    largest = sorted(range(len(weights)), key=lambda i: (-weights[i], i))
    for i in largest[: total - sum(shares)]:
        shares[i] += 1
    return shares


def drawn_from_all(order: Iterable[str], count: int, pools: Sequence[Pool]) -> list[str]:
    """Return the first ``count`` hosts of ``order``, each pool giving its share of them."""
    hosts = list(order)
    pool_of = {host: i for i, pool in enumerate(pools) for host in pool.hosts}
    there = Counter(pool_of[host] for host in hosts)
    shares = divided(count, [there[i] for i in range(len(pools))]) if hosts else []
    chosen: list[str] = []
    for host in hosts:
        if shares[pool_of[host]]:
            shares[pool_of[host]] -= 1
            chosen.append(host)
    return chosen
