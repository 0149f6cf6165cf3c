"""Where gangs went: how full each rack was at chosen moments, and how far gangs spread.

A rack is as full as its GPUs: hosts may differ, and the pods of a trace take parts of them.

All is found from the columns after the run, so nothing is copied during it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from loadtest.fourphase.load.pools import Ask
from loadtest.fourphase.site.columns import Ids
from loadtest.fourphase.site.watches import Watching
from loadtest.traces.fleet import Fleet


def figures(watching: Watching, moments: Mapping[str, float]) -> dict[str, Any]:
    """Return the racks, how many GPUs of each were in use at each moment, and the spread.

    ``moments``: name → seconds. ``used`` of a map is in the order of ``racks``.
    """
    rack_ids, racks = racks_of(watching.fleet)
    hosts = np.bincount(rack_ids, minlength=len(racks))
    gpus = np.bincount(rack_ids, [host.gpus for host in watching.fleet.hosts], len(racks))
    maps = [
        {"name": name, "at": round(at, 3), "used": rack_use(watching, at)}
        for name, at in moments.items()
    ]
    return {
        "racks": [
            {"block": block, "rack": rack, "hosts": int(hosts[i]), "gpus": int(gpus[i])}
            for i, (block, rack) in enumerate(racks)
        ],
        "maps": maps,
        "spread": spread(watching),
    }


def rack_use(watching: Watching, at: float) -> list[int]:
    """Return the GPUs in use of each rack at a time."""
    pods = watching.pods
    ended = np.fmin(pods.time("done"), pods.time("gone"))
    there = (pods.time("bound") <= at) & ~(ended <= at) & (pods.node >= 0)
    gpus = np.zeros(max((seen.gang for seen in watching.gangs.values()), default=0) + 1, np.int64)
    for seen in watching.gangs.values():
        gpus[seen.gang] = seen.ask.gpus
    rack_ids, racks = racks_of(watching.fleet)
    used = np.bincount(rack_ids[pods.node[there]], gpus[pods.gang[there]], len(racks))
    return [int(count) for count in used]


def racks_of(fleet: Fleet) -> tuple[Ids, list[tuple[str, str]]]:
    """Return the rack id of each host, int32[hosts], and (block, rack) of each id."""
    ids: dict[tuple[str, str], int] = {}
    of_host = [ids.setdefault((host.block, host.rack), len(ids)) for host in fleet.hosts]
    return np.array(of_host, np.int32), list(ids)


def spread(watching: Watching) -> list[dict[str, object]]:
    """Return for each gang size: gangs, racks used on average, and the fewest possible.

    Of gangs of several pods that were whole; the fewest possible is that of an empty cluster, on
    average where gangs of one size ask for different hosts.
    """
    rack_ids, _ = racks_of(watching.fleet)
    rooms: dict[Ask, Ids] = {}
    found: dict[int, list[tuple[int, int]]] = {}
    for seen in watching.gangs.values():
        nodes = watching.pods.node[seen.first : seen.first + seen.size]
        if seen.size > 1 and (nodes >= 0).all():
            if seen.ask not in rooms:
                rooms[seen.ask] = rack_rooms(watching.fleet, seen.ask)
            fewest = fewest_racks(rooms[seen.ask], seen.size)
            found.setdefault(seen.size, []).append((len(np.unique(rack_ids[nodes])), fewest))
    return [
        {
            "size": size,
            "gangs": len(counts),
            "racks_mean": round(sum(used for used, _ in counts) / len(counts), 2),
            "racks_fewest": round(sum(fewest for _, fewest in counts) / len(counts), 2),
        }
        for size, counts in sorted(found.items())
    ]


def rack_rooms(fleet: Fleet, ask: Ask) -> Ids:
    """Return how many pods each rack takes when empty, the most first, int32[racks]."""
    rack_ids, racks = racks_of(fleet)
    room = np.bincount(rack_ids, [ask.on(host) for host in fleet.hosts], len(racks))
    return np.sort(room.astype(np.int32))[::-1]


def fewest_racks(rooms: Ids, size: int) -> int:
    """Return how many of the racks hold a gang at least; ``rooms`` as ``rack_rooms`` gives it."""
    return int(np.searchsorted(np.cumsum(rooms), size)) + 1
