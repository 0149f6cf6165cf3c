"""Installing the CRDs that a set of objects needs, on a real API server.

Kinds that no CRD is found for are taken for the API server's own. Where two projects
define one kind (the MPIJobs of the training operator and of the MPI operator) both
versions are served, as in a cluster that moves from one to the other.
"""

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
from support.dialects.kinds import CRDS, KAI, definition
from support.machine.patience import PATIENCE_S

from loadtest.testbed.client.api import Api, ApiFailed

JSON = dict[str, Any]
# Projects without a module that can be downloaded: their kinds get no schema.
STAND_INS = {("scheduling.run.ai", "PodGroup"): KAI}
_NOT_YET = (404, 429)  # not established, or its storage is not ready


async def install(api: Api, directory: Path, objects: Iterable[JSON]) -> dict[tuple[str, str], str]:
    """Install what `objects` need out of `directory`; return (group, kind): plural of it all."""
    wanted = {(group_of(obj), str(obj["kind"])) for obj in objects}
    found = await asyncio.to_thread(_definitions, directory, wanted)
    async with asyncio.TaskGroup() as group:
        for crd in found:
            group.create_task(_create(api, crd))
    names = [(crd["spec"]["group"], crd["spec"]["names"]) for crd in found]
    return {(crd_group, name["kind"]): name["plural"] for crd_group, name in names}


def group_of(obj: JSON) -> str:
    """Return the API group of an object, "" for the core group."""
    group, slash, _ = str(obj["apiVersion"]).partition("/")
    return group if slash else ""


def _definitions(directory: Path, wanted: set[tuple[str, str]]) -> list[JSON]:
    made: dict[str, JSON] = {}
    for crd in _read(directory, wanted):
        known = made.setdefault(crd["metadata"]["name"], crd)
        if known is not crd:
            known["spec"]["versions"] += _not_stored(crd["spec"]["versions"])
    for key in wanted & STAND_INS.keys():
        made[str(key)] = definition(STAND_INS[key], key[1])
    return list(made.values())


def _read(directory: Path, wanted: set[tuple[str, str]]) -> Iterator[JSON]:
    files = sorted(directory.rglob("*.json"))
    assert files, f"{directory}: no CRDs; run make assets"
    for file in files:
        crd = orjson.loads(file.read_bytes())
        if (crd["spec"]["group"], crd["spec"]["names"]["kind"]) in wanted:
            yield crd


def _not_stored(versions: list[JSON]) -> list[JSON]:
    return [version | {"storage": False} for version in versions]


async def _create(api: Api, crd: JSON) -> None:
    """Create a definition and wait until every version of its kind is served.

    The kind is asked, not the definition: that is half a megabyte each time.
    """
    await api.create(CRDS, crd)
    spec = crd["spec"]
    for version in (v["name"] for v in spec["versions"] if v["served"]):
        path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
        await until_served(api, path)


async def until_served(api: Api, path: str, patience_s: float = PATIENCE_S) -> None:
    """Wait until a new kind is served; the API server takes a moment."""
    async with asyncio.timeout(patience_s):
        while not await is_served(api, path):  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.1)


async def is_served(api: Api, path: str) -> bool:
    """Return whether the objects of a kind can be listed already, or still."""
    try:
        await api.get(path, limit="1")
    except ApiFailed as refused:
        if refused.code not in _NOT_YET:
            raise
        return False
    return True
