"""The manifests under tests/data/dialects: objects, what controllers make of them, the gangs.

The last document of each is ``kind: Made``, with the only ``minor`` that knows the objects if
there is but one; all others are what users (or a controller that
stands in between) write. In a group of pods ``{}`` is the pod's number:

    name, count (1), first (0)     names and numbers
    owner                          Kind/name of an object above, or apiVersion, kind and name
    labels, annotations            as the controller writes them
    gpus (1), scheduler, spec      what the pods ask for; spec is merged into theirs
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from support.machine import quickyaml

from loadtest.testbed.client import pods

JSON = dict[str, Any]
MANIFESTS = Path(__file__).parents[2] / "data" / "dialects"


@dataclass(frozen=True, slots=True)
class Gang:
    """What is to be read: minimum, size (None: unknown), and whether it shares one rack."""

    min: int
    size: int | None
    rack: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One manifest; ``dialect`` must be registered for it to mean anything."""

    name: str
    dialect: str
    objects: tuple[JSON, ...]
    groups: tuple[JSON, ...]
    gangs: dict[str, Gang]
    #: The names of the pods of its only gang in rank order, where there is one.
    ranks: tuple[str, ...] = ()
    #: The only Kubernetes minor that knows the objects, or nothing.
    minor: str = ""

    def keys(self, namespace: str) -> dict[str, Gang]:
        """Return the gangs by their keys in this namespace."""
        parts = ((*key.partition("/"), gang) for key, gang in self.gangs.items())
        return {f"{dialect}/{namespace}/{name}": gang for dialect, _, name, gang in parts}

    def members(self, namespace: str, made: list[JSON]) -> list[JSON]:
        """Return the pods; ``made`` are the objects as the API server returned them."""
        return [pod for group in self.groups for pod in made_of(group, namespace, made)]


def load_all() -> list[Case]:
    """Return every case, by name."""
    return [_load(file) for file in sorted(MANIFESTS.glob("*.yaml"))]


def of_minor(minor: str, cases: Iterable[Case]) -> list[Case]:
    """Return the cases with objects that a minor of Kubernetes knows."""
    return [case for case in cases if case.minor in ("", minor)]


def _load(file: Path) -> Case:
    *objects, made = quickyaml.load_all(file.read_text(encoding="utf-8"))
    assert made["kind"] == "Made", f"{file.name}: the last document says what is made of it"
    gangs = {key: Gang(**wanted) for key, wanted in made["gangs"].items()}
    return Case(
        name=file.stem,
        dialect=made["dialect"],
        objects=tuple(objects),
        groups=tuple(made["pods"]),
        gangs=gangs,
        ranks=tuple(made.get("ranks", ())),
        minor=made.get("minor", ""),
    )


def made_of(group: JSON, namespace: str, made: list[JSON]) -> list[JSON]:
    """Return the pods of one group."""
    return list(_pods(group, namespace, made))


def _pods(group: JSON, namespace: str, made: list[JSON]) -> Iterator[JSON]:
    first = group.get("first", 0)
    for number in range(first, first + group.get("count", 1)):
        pod = pods.pod(
            _filled(group["name"], number),
            namespace=namespace,
            gpus=group.get("gpus", 1),
            labels=_numbered(group.get("labels", {}), number),
            annotations=_numbered(group.get("annotations", {}), number),
            owner=_owner(group["owner"], made) if "owner" in group else None,
        )
        pod["spec"] |= group.get("spec", {})
        if "scheduler" in group:
            pod["spec"]["schedulerName"] = group["scheduler"]
        yield pod


def _filled(text: str, number: int) -> str:
    return text.replace("{}", str(number))


def _numbered(keys: dict[str, str], number: int) -> dict[str, str]:
    return {key: _filled(value, number) for key, value in keys.items()}


def _owner(owner: str | JSON, made: list[JSON]) -> JSON:
    """Return a controller reference; owners in between exist by name only."""
    if isinstance(owner, str):
        kind, _, name = owner.partition("/")
        (found,) = (o for o in made if (o["kind"], o["metadata"]["name"]) == (kind, name))
        owner = {"apiVersion": found["apiVersion"], "kind": kind, "name": name}
        return owner | {"uid": found["metadata"]["uid"], "controller": True}
    return owner | {"uid": str(uuid4()), "controller": True}
