"""Installing the CRDs that a set of objects needs, on a real API server.

Kinds that no CRD is found for are taken for the API server's own. Where two projects
define one kind (the MPIJobs of the training operator and of the MPI operator) both
versions are served, as in a cluster that moves from one to the other.
"""

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from support.standincrds import STAND_INS, stand_in

from loadtest.api import Api

JSON = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def install(api: Api, directory: Path, objects: Iterable[JSON]) -> dict[tuple[str, str], str]:
    """Install what `objects` need out of `directory`; return (group, kind): plural of it all."""
    wanted = {(group_of(obj), str(obj["kind"])) for obj in objects}
    found = await asyncio.to_thread(_definitions, directory, wanted)
    async with asyncio.TaskGroup() as group:
        for definition in found:
            group.create_task(_create(api, definition))
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
    made |= {str(key): stand_in(*key) for key in wanted & STAND_INS.keys()}
    return list(made.values())


def _read(directory: Path, wanted: set[tuple[str, str]]) -> Iterator[JSON]:
    """Yield the CRDs of these kinds; of the other files (13 MB) nothing is parsed."""
    files = sorted(directory.rglob("*.yaml"))
    assert files, f"{directory}: no CRDs; run make assets"
    for file in files:
        text = file.read_text(encoding="utf-8")
        group = file.name.partition("_")[0]
        if any(g == group and f"\n    kind: {kind}\n" in text for g, kind in wanted):
            yield yaml.load(text, Loader=_LOADER)  # noqa: S506 - a safe loader


def _not_stored(versions: list[JSON]) -> list[JSON]:
    return [version | {"storage": False} for version in versions]


async def _create(api: Api, definition: JSON) -> None:
    """Create a definition and wait until its kind is served."""
    await api.create(CRDS, definition)
    name = definition["metadata"]["name"]
    async with asyncio.timeout(60):
        while not _established(await api.get(f"{CRDS}/{name}")):  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.1)


def _established(definition: JSON) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
