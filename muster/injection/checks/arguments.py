"""Arguments that will not do what they look like.

- ``${NAME}`` in the exec form: Kubernetes expands only ``$(NAME)``; the program gets the braces as
  they stand. A shell that is asked to run a string expands it itself and is left out, whatever
  wraps it (``tini -- bash -c``); so is an image's entrypoint that is a shell, if that is known.
- ``--nnodes`` of torchrun that is not the gang's size: the rendezvous waits for ever, or leaves
  members out. A range (``2:8``) is checked by its upper end, a name like ``$(NNODES)`` not at all.
"""

import re
from collections.abc import Iterator
from typing import Final

from muster.injection.checks.finding import PodFinding
from muster.injection.patching.additions import CONTAINERS, INIT_CONTAINERS
from muster.injection.podview import Container
from muster.injection.subject import Subject

_BRACES: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
_NNODES: Final = re.compile(r"--nnodes[= ](?:[0-9]+:)?([0-9]{1,9})\b")


def arguments(subject: Subject) -> Iterator[PodFinding]:
    """Yield what is odd about commands and arguments."""
    spec = subject.pod.spec
    for within, containers in (
        (CONTAINERS, spec.containers),
        (INIT_CONTAINERS, spec.init_containers),
    ):
        for container in containers:
            where = f"{within}[{container.name}]"
            if not _by_shell(container):
                yield from _unexpanded(where, container)
            yield from _other_size(where, container, subject)


def nodes(container: Container) -> int | None:
    """Return how many nodes the program is told that there are, ``None`` where it is told none."""
    found = _NNODES.search(" ".join((*container.command, *container.args)))
    return int(found[1]) if found else None


def _by_shell(container: Container) -> bool:
    """Return whether a shell is among the words before the first that holds braces."""
    for word in (*container.command, *container.args):
        if word.rsplit("/", 1)[-1] in _SHELLS:
            return True
        if _BRACES.search(word):
            return False
    return False


def _unexpanded(where: str, container: Container) -> Iterator[PodFinding]:
    words = (*container.command, *container.args)
    found = dict.fromkeys(name for word in words for name in _BRACES.findall(word))
    unless = "" if container.command else ", unless the image's entrypoint is one"
    for name in found:
        yield PodFinding(
            f"{where}: {name} is not expanded without a shell{unless}: write $({name[2:-1]})"
        )


def _other_size(where: str, container: Container, subject: Subject) -> Iterator[PodFinding]:
    size = (subject.gang.size or subject.gang.made) if subject.gang else None
    told = nodes(container)
    if size is not None and told is not None and told != size:
        yield PodFinding(
            f"{where}: --nnodes {told} but the gang has {size} members: say $(PET_NNODES) or {size}"
        )
