"""What a check says: one line of what is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    UNKNOWN = "unknown"  # could not be looked at: the remedy says what that takes
    WARNING = "warning"  # works, until or unless
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked thing. `remedy` is empty where nothing is to be done."""

    level: Level
    area: str
    text: str
    remedy: str = ""


def ok(area: str, text: str) -> Finding:
    """Return that all is well."""
    return Finding(Level.OK, area, text)


def unknown(area: str, text: str, remedy: str) -> Finding:
    """Return that it could not be seen."""
    return Finding(Level.UNKNOWN, area, text, remedy)


def warning(area: str, text: str, remedy: str) -> Finding:
    """Return that it works, but."""
    return Finding(Level.WARNING, area, text, remedy)


def broken(area: str, text: str, remedy: str) -> Finding:
    """Return that it does not work."""
    return Finding(Level.BROKEN, area, text, remedy)
