"""One policy's changes to one pod: the document, and where the policy's paths are in it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from muster.injection.overrides.document import Document
from muster.injection.overrides.errors import OverrideError
from muster.injection.overrides.places import PolicySubject
from muster.injection.patching.additions import CONTAINERS, INIT_CONTAINERS
from muster.injection.patching.pointers import Json, Path

LISTS: Final = (INIT_CONTAINERS, CONTAINERS)  # in the order in which KubeAdmiral looks


@dataclass(slots=True)
class Edit:
    """``outside``: what the policy says that is not the pod's, in sentences."""

    document: Document
    place: PolicySubject
    outside: list[str] = field(default_factory=list)

    def at(self, pointer: str) -> Path | None:
        """Return the path in the pod; one that is not the pod's is noted."""
        path = self.place.pod_path(pointer)
        if isinstance(path, tuple):
            return path
        self.outside.append(path)
        return None

    def containers(self, *lists: str) -> Iterator[tuple[Path, dict[str, Json]]]:
        """Yield the containers of these lists with their paths."""
        for within in lists:
            found = self.document.find(("spec", within))
            for index, container in enumerate(found if isinstance(found, list) else ()):
                if isinstance(container, dict):
                    yield ("spec", within, str(index)), container

    def text(self, path: Path) -> str:
        """Return the text at a path; raises ``OverrideError`` where there is none."""
        value = self.document.get(path)
        if not isinstance(value, str):
            raise OverrideError(f"/{'/'.join(path)} is no text")
        return value

    def not_the_pods(self, what: str) -> None:
        """Note an overrider that is about the workload's own metadata."""
        self.outside.append(f"{what} are those of {self.place.owner}, not of its pods")


Step = Callable[[Edit], None]
"""One thing that a policy does; raises ``OverrideError`` where it cannot."""


def texts(value: Json) -> list[Json]:
    """Return a list of a container's (``command``, ``args``, ``env``), empty where it has none."""
    return list(value) if isinstance(value, list) else []
