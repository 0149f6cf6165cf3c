"""What is wrong with a request, in the words that a person needs to put it right."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """What a problem comes to."""

    CONTRADICTION = "contradiction"  # the pod asks for what cannot be
    LOST = "lost"  # it would run, but without what it needs, and nobody would notice
    HINT = "hint"  # it runs as asked, and may be better


@dataclass(frozen=True, slots=True)
class PodProblem:
    """``field`` of the pod, its ``value``, what is ``allowed``, and the way out (``remedy``)."""

    severity: Severity
    field: str
    value: str
    allowed: str
    remedy: str

    def __str__(self) -> str:
        """Return one line; the API server cuts warnings after 256 characters."""
        allowed = f"; allowed: {self.allowed}" if self.allowed else ""
        return f"{self.field}: {self.value!r}{allowed}; {self.remedy}"
