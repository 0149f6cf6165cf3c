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


def verdict(findings: list[CheckFinding]) -> str:
    """Return the last line of a report: "all good", or the one next thing to do."""
    for level in (CheckLevel.BROKEN, CheckLevel.WARNING, CheckLevel.UNKNOWN):
        worst = [finding for finding in findings if finding.level is level]
        if worst:
            todo = worst[0].remedy or worst[0].text
            more = f" ({len(worst) - 1} more {level.value})" if len(worst) > 1 else ""
            return f"next: {worst[0].area}: {todo}{more}"
    return "all good"
