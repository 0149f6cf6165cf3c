"""Pods and pod templates in any manifest, wherever its kind keeps them. Pure.

A template is recognised by what it is, a ``spec`` with ``containers``, so that a Job, a JobSet, a
RayCluster and a kind that is not known here are all read the same way.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from muster.injection.patching.pointers import Json, Path

_FIELD: Final = re.compile(r"(?P<of_pod>metadata|spec)\.|(?:init)?[cC]ontainers\[|volumes\[")
#: of Jobs, sets and LeaderWorkerSets; and of groups of Ray workers that share one slice
_MULTIPLIERS: Final = (("replicas", "parallelism", "size"), ("numOfHosts",))


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A pod or a pod template inside ``document``."""

    document: Json
    #: members from the root, empty for the document itself
    path: Path
    #: how many there are of each thing that the template stands in, the outermost first: sets of a
    #: set of groups, Jobs of a role, pods of a Job; as far as the document says
    counts: tuple[int, ...] = ()
    #: path of the object that it stands in, which in a List or an AppWrapper is not the document
    owner: Path = ()

    @property
    def pods(self) -> int:
        """Return how many such pods the document makes, as far as it says."""
        return math.prod(self.counts)

    @property
    def together(self) -> tuple[int, ...]:
        """Return how many pods there are of this template in a Job, a role, a set and so on."""
        inner = (math.prod(self.counts[at:]) for at in range(len(self.counts)))
        return tuple(inner) or (1,)

    @property
    def pod(self) -> dict[str, Json]:
        """Return the pod as a pod of this template would be: metadata and spec."""
        found = at(self.document, self.path)
        return found if isinstance(found, dict) else {}

    @property
    def object(self) -> dict[str, Json]:
        """Return the object that the template stands in."""
        found = at(self.document, self.owner)
        return found if isinstance(found, dict) else {}

    @property
    def where(self) -> str:
        """Return the path as people write it, ``spec.tasks[1].template``; "" for the document."""
        return written(self.path)

    def within(self, text: str) -> str:
        """Return a message about the pod with its field as one path from the root.

        Messages begin with a field of the pod (``metadata``, ``spec``) or of its spec, or with what
        follows the template's own path, or name no field.
        """
        if not self.path:
            return text
        if text.startswith((".", ":")):
            return self.where + text
        field = _FIELD.match(text)
        if field is None:
            return f"{self.where}: {text}"
        return f"{self.where}.{'' if field['of_pod'] else 'spec.'}{text}"


def templates(document: Json) -> list[PodTemplate]:
    """Return every pod and pod template of one document, in the order they stand there."""
    return [PodTemplate(document, *found) for found in _found(document, (), (), ())]


def at(document: Json, path: Path) -> Json:
    """Return what stands at a path; numbers count list items."""
    for step in path:
        if isinstance(document, dict):
            document = document[step]
        elif isinstance(document, list):
            document = document[int(step)]
    return document


def written(path: Path) -> str:
    """Return a path as people write it: ``spec.tasks[1].template``, ``labels[muster.dev/gang]``."""
    steps = (f".{step}" if step.isidentifier() else f"[{step}]" for step in path)
    return "".join(steps).removeprefix(".")


def without_nulls(document: Json) -> Json:
    """Return the document as the API server would keep it: a null member is no member."""
    if isinstance(document, dict):
        return {k: without_nulls(value) for k, value in document.items() if value is not None}
    if isinstance(document, list):
        return [without_nulls(item) for item in document]
    return document


def _found(
    value: Json, path: Path, counts: tuple[int, ...], owner: Path
) -> Iterator[tuple[Path, tuple[int, ...], Path]]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _found(item, (*path, str(index)), counts, owner)
    if not isinstance(value, dict):
        return
    if "apiVersion" in value and "kind" in value:
        owner = path
    spec = value.get("spec")
    if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
        yield path, counts, owner
        return
    counts = (*counts, *_counts(value))
    for key, item in value.items():
        yield from _found(item, (*path, key), counts, owner)


def _counts(value: dict[str, Json]) -> Iterator[int]:
    """Yield how often what stands in an object is made; parallelism beside replicas is the same."""
    for keys in _MULTIPLIERS:
        found = [n for key in keys if isinstance(n := value.get(key), int) and n > 0]
        if found:
            yield max(found)
