"""What is wrong with a request, in the words that a person needs to put it right."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """What a problem comes to."""

    #: the pod asks for what cannot be
    CONTRADICTION = "contradiction"
    #: it would run, but without what it needs, unnoticed
    LOST = "lost"
    #: it runs as asked, and may be better
    HINT = "hint"


@dataclass(frozen=True, slots=True)
class PodProblem:
    """One problem of a pod, with the way out."""

    severity: Severity
    #: of the pod
    field: str
    value: str
    #: "" where the remedy says it all
    allowed: str
    remedy: str

    def __str__(self) -> str:
        """Return one line; the API server cuts warnings after 256 characters."""
        allowed = f"; allowed: {self.allowed}" if self.allowed else ""
        return f"{self.field}: {self.value!r}{allowed}; {self.remedy}"
