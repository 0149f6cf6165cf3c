"""Arguments that will not do what they look like.

- ``${NAME}`` in the exec form: Kubernetes expands only ``$(NAME)``; the program gets the braces as
  they stand. A shell that is asked to run a string (``sh -c``) expands it itself and is left out.
- ``--nnodes`` of torchrun that is not the gang's size: the rendezvous waits for ever, or leaves
  members out. A range (``2:8``) is checked by its upper end, a name like ``$(NNODES)`` not at all.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from injection.findings import Finding
from injection.podview import Container
from injection.subject import Subject

_BRACES: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
_NNODES: Final = re.compile(r"--nnodes[= ](?:[0-9]+:)?([0-9]{1,9})\b")


def arguments(subject: Subject) -> Iterator[Finding]:
    """Yield what is odd about commands and arguments."""
    for container in subject.pod.spec.containers:
        words = (*container.command, *container.args)
        if not _by_shell(words):
            yield from _unexpanded(container, words)
        yield from _other_size(container, words, subject)


def _by_shell(words: Sequence[str]) -> bool:
    return bool(words) and words[0].rsplit("/", 1)[-1] in _SHELLS


def _unexpanded(container: Container, words: Sequence[str]) -> Iterator[Finding]:
    found = dict.fromkeys(name for word in words for name in _BRACES.findall(word))
    for name in found:
        yield Finding(
            f"containers[{container.name}]: {name} is not expanded without a shell: "
            f"write $({name[2:-1]})"
        )


def _other_size(container: Container, words: Sequence[str], subject: Subject) -> Iterator[Finding]:
    size = subject.gang.size if subject.gang else None
    found = _NNODES.search(" ".join(words))
    if size is not None and found is not None and int(found[1]) != size:
        yield Finding(
            f"containers[{container.name}]: --nnodes {found[1]} but the gang has {size} members: "
            f"say $(PET_NNODES) or {size}"
        )
