"""What a check says: one line of what is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CheckLevel(StrEnum):
    """How bad it is."""

    OK = "ok"
    UNKNOWN = "unknown"  # could not be looked at: the remedy says what that takes
    WARNING = "warning"  # works, until or unless
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One checked thing. `remedy` is empty where nothing is to be done."""

    level: CheckLevel
    area: str
    text: str
    remedy: str = ""


def ok(area: str, text: str) -> CheckFinding:
    """Return that all is well."""
    return CheckFinding(CheckLevel.OK, area, text)


def unknown(area: str, text: str, remedy: str) -> CheckFinding:
    """Return that it could not be seen."""
    return CheckFinding(CheckLevel.UNKNOWN, area, text, remedy)


def warning(area: str, text: str, remedy: str) -> CheckFinding:
    """Return that it works, but."""
    return CheckFinding(CheckLevel.WARNING, area, text, remedy)


def broken(area: str, text: str, remedy: str) -> CheckFinding:
    """Return that it does not work."""
    return CheckFinding(CheckLevel.BROKEN, area, text, remedy)
