"""The result of a check: one line, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CheckLevel(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    UNKNOWN = "unknown"  # could not be checked; the remedy names what that needs
    WARNING = "warning"  # works now, but may fail
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One result of a check."""

    level: CheckLevel
    #: The part of the installation, such as "webhooks".
    area: str
    #: What was found.
    text: str
    #: What to do, "" for nothing.
    remedy: str = ""


def ok(area: str, text: str) -> CheckFinding:
    """Return a finding of level OK."""
    return CheckFinding(CheckLevel.OK, area, text)


def unknown(area: str, text: str, remedy: str) -> CheckFinding:
    """Return a finding of level UNKNOWN."""
    return CheckFinding(CheckLevel.UNKNOWN, area, text, remedy)


def warning(area: str, text: str, remedy: str) -> CheckFinding:
    """Return a finding of level WARNING."""
    return CheckFinding(CheckLevel.WARNING, area, text, remedy)


def broken(area: str, text: str, remedy: str) -> CheckFinding:
    """Return a finding of level BROKEN."""
    return CheckFinding(CheckLevel.BROKEN, area, text, remedy)
