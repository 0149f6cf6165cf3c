"""What a check says: one line of what is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is."""

    OK = "ok"
    UNKNOWN = "unknown"  # could not be looked at: the remedy says what that takes
    WARNING = "warning"  # works, until or unless
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One checked thing. `remedy` is empty where nothing is to be done."""

    level: Severity
    area: str
    text: str
    remedy: str = ""


def ok(area: str, text: str) -> CheckFinding:
    """Return that all is well."""
    return CheckFinding(Severity.OK, area, text)


def unknown(area: str, text: str, remedy: str) -> CheckFinding:
    """Return that it could not be seen."""
    return CheckFinding(Severity.UNKNOWN, area, text, remedy)


def warning(area: str, text: str, remedy: str) -> CheckFinding:
    """Return that it works, but."""
    return CheckFinding(Severity.WARNING, area, text, remedy)


def broken(area: str, text: str, remedy: str) -> CheckFinding:
    """Return that it does not work."""
    return CheckFinding(Severity.BROKEN, area, text, remedy)
