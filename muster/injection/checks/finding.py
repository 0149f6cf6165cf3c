"""What a check finds: a warning that the author sees, or a refusal."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PodFinding:
    """One finding of a check."""

    #: field, value, what is allowed, what to do
    text: str
    #: whether the pod is not let in
    refused: bool = False
