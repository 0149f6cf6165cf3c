"""What a check says: a warning that the author sees, or a refusal."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PodFinding:
    """``text``: field, value, what is allowed, what to do. ``refused``: the pod is not let in."""

    text: str
    refused: bool = False
