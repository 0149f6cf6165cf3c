"""Arguments that will not do what they look like.

- ``${NAME}`` in the exec form: Kubernetes expands only ``$(NAME)``; the program gets the braces as
  they stand. What another program expands is left out: the command line of a shell, whatever wraps
  it (``tini -- bash -c``, ``su -c``), code of another language (``python3 -c``), and overrides of
  Hydra (``model.width=${size}``), which resolves them itself.
- ``--nnodes`` of torchrun, in each call of a command, that no number of pods fits which may meet:
  the rendezvous waits for ever, or leaves members out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from muster.injection.checks.finding import PodFinding
from muster.injection.patching.additions import CONTAINERS, INIT_CONTAINERS
from muster.injection.patching.containers import names_of
from muster.injection.podview import Container
from muster.injection.subject import Gang, Subject

_BRACES: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_SHELLS: Final = frozenset(
    {"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh"}
)
#: programs that give their arguments to a shell, here or elsewhere
_TO_SHELLS: Final = frozenset({"ssh", "watch", "parallel", "eval", "envsubst"})
#: a flag of a shell before a command line: ``-c``, ``-lc``, ``-euxc``
_COMMAND_LINE: Final = re.compile(r"-[a-z]*c")
#: flags of other programs before a text in a language of theirs
_CODE: Final = frozenset({"-c", "-e", "--command", "--eval", "--execute", "--session-command"})
#: Hydra's grammar of overrides: ``key=value``, ``+key@package=value``, ``++key=value``
_OVERRIDE: Final = re.compile(r"[+~]{0,2}[A-Za-z_][\w./@:-]*=")
_ENV: Final = "env"  # its arguments are of the same form, and it expands nothing
_FLAG: Final = "--nnodes"
_NNODES: Final = re.compile(
    rf"(?<![\w-]){_FLAG}(?:=|\s+)[\"'\\\s]*(?P<least>[0-9]{{1,9}})(?::(?P<most>[0-9]{{1,9}}))?(?![\w.:])"
)
_COMMENT: Final = re.compile(r"^\s*#.*$", re.MULTILINE)
#: ends one call in a command line of a shell; a line that ends in a backslash goes on
_NEXT_CALL: Final = re.compile(r"&&|\|\||[;|&]|(?<!\\)\n")
_STANDALONE: Final = "--standalone"  # one node, whatever else is said
_SIZE_VARIABLE: Final = "PET_NNODES"


def arguments(subject: Subject) -> Iterator[PodFinding]:
    """Yield what is odd about commands and arguments."""
    spec = subject.pod.spec
    for within, containers in (
        (CONTAINERS, spec.containers),
        (INIT_CONTAINERS, spec.init_containers),
    ):
        for container in containers:
            where = f"{within}[{container.name}]"
            yield from _unexpanded(where, container)
            yield from _other_size(where, container, subject)


def nodes(container: Container) -> int | None:
    """Return the most nodes that a call of the container waits for, ``None`` where none says."""
    return max((call.most for call in _calls(container)), default=None)


# -- braces ----------------------------------------------------------------------------------------


def _unexpanded(where: str, container: Container) -> Iterator[PodFinding]:
    words = _literal((*container.command, *container.args))
    unless = "" if container.command else ", unless the image's entrypoint is one"
    for name in dict.fromkeys(name for word in words for name in _BRACES.findall(word)):
        yield PodFinding(
            f"{where}: {name} is not expanded without a shell{unless}: write $({name[2:-1]})"
        )


def _literal(words: Sequence[str]) -> Iterator[str]:
    """Yield the words that a program gets as they stand, and does not resolve itself."""
    shell = code = env = False
    for word in words:
        program = word.rsplit("/", 1)[-1]
        if program in _TO_SHELLS or (shell and _COMMAND_LINE.fullmatch(word)):
            return
        if not code and (env or not _OVERRIDE.match(word)):
            yield word
        code = word in _CODE
        shell = shell or program in _SHELLS
        env = program == _ENV or (env and "=" in word)


# -- nodes -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _TorchrunCall:
    """The nodes that a call of torchrun waits for: ``--nnodes LEAST:MOST``."""

    least: int
    most: int
    standalone: bool

    @classmethod
    def of(cls, found: re.Match[str], text: str) -> "_TorchrunCall":
        """Return what a match says; a number alone is both ends."""
        most = int(found["most"] or found["least"])
        return cls(int(found["least"]), most, _STANDALONE in text)

    def fits(self, count: int) -> bool:
        """Return whether a rendezvous of so many pods begins with all of them."""
        return self.least <= count <= self.most

    def __str__(self) -> str:
        """Return the range as it is written."""
        return str(self.most) if self.least == self.most else f"{self.least}:{self.most}"


def _calls(container: Container) -> Iterator[_TorchrunCall]:
    words = (*container.command, *container.args)
    if not any(_FLAG in word for word in words):
        return
    text = " ".join(_COMMENT.sub("", word) for word in words)
    for call in _NEXT_CALL.split(text):
        yield from (_TorchrunCall.of(found, call) for found in _NNODES.finditer(call))


def _other_size(where: str, container: Container, subject: Subject) -> Iterator[PodFinding]:
    gang = subject.gang
    if gang is None:
        return
    counts, calls = _counts(gang, subject), [*_calls(container)]
    joined = any(call.most > 1 and any(map(call.fits, counts)) for call in calls)
    for call in dict.fromkeys(calls):
        alone = call.most == 1 and (joined or call.standalone)
        if not alone and _misses(call, counts, gang):
            yield PodFinding(f"{where}: --nnodes {call} {_instead(counts, gang, container)}")


def _counts(gang: Gang, subject: Subject) -> tuple[int, ...]:
    """Return how many pods may meet, () where that is not known.

    Pods that a controller made are of a Job or a role, whose size is not at hand.
    """
    if gang.counts or gang.size is None:
        return gang.counts
    made = any(owner.controller for owner in subject.pod.metadata.owner_references)
    return () if made or gang.role else (gang.size,)


def _misses(call: _TorchrunCall, counts: Sequence[int], gang: Gang) -> bool:
    """Return whether no number of pods that may meet fits a call."""
    if not counts:
        return gang.size is not None and call.least > gang.size
    if gang.is_open:
        return call.most < min(counts)
    return not any(map(call.fits, counts))


def _instead(counts: Sequence[int], gang: Gang, container: Container) -> str:
    """Return what the number is compared with, and what to write."""
    sizes = [str(count) for count in counts if count > 1] or [str(gang.size or counts[0])]
    several, text = len(sizes) > 1, " or ".join(sizes)
    whose = "its role or gang has" if several else "the gang has" if counts else "the gang has only"
    known = f" or $({_SIZE_VARIABLE})" if _SIZE_VARIABLE in names_of(container) else ""
    return f"but {whose} {text} members: say {text}{known}"
