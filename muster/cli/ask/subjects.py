"""What a command is about: a pod or a gang, as a user names it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from muster.cli.output import ExitCode, Failure

_KINDS: Final = {
    "pod": "pod", "pods": "pod", "po": "pod", "gang": "gang", "gangs": "gang",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NamedSubject:
    """A pod or a gang."""

    #: "pod" or "gang"
    kind: str
    namespace: str
    name: str


def subject(text: str, namespace: Callable[[], str]) -> NamedSubject:
    """Return what ``pod/NAME``, ``gang/NAME``, ``NAMESPACE/POD`` or ``NAME``, a pod's, is about.

    ``namespace``: that of names without one. Raises ``Failure`` for anything else.
    """
    before, slash, name = text.rpartition("/")
    if not name or "/" in before or (slash and not before):
        written = "write NAME, pod/NAME, gang/NAME or NAMESPACE/NAME"
        raise Failure(f"pod {text!r}: {written}", code=ExitCode.USAGE)
    if not before:
        return NamedSubject("pod", namespace(), quote(name, safe=""))
    if before in _KINDS:
        return NamedSubject(_KINDS[before], namespace(), quote(name, safe=""))
    return NamedSubject("pod", quote(before, safe=""), quote(name, safe=""))


def query(**parameters: str) -> str:
    """Return the part of a URL that begins with ?; empty parameters are left out."""
    given = "&".join(f"{key}={quote(value, safe='')}" for key, value in parameters.items() if value)
    return f"?{given}" if given else ""
