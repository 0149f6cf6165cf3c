"""Durations as Go writes them: "1h30m", "90s", "1.5h", "500ms"."""

import re
from typing import Final

DURATION_RULE: Final = 'a duration of 0 or more, such as "30s", "5m" or "1h30m"'

_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART: Final = r"([0-9]{1,15}(?:\.[0-9]{0,9})?)(h|ms|m|s|us|µs|ns)"
_WHOLE: Final = re.compile(rf"\+?(?:{_PART})+")
_PARTS: Final = re.compile(_PART)


def seconds(text: str) -> float | None:
    """Return a duration in seconds, ``None`` for a text that is none, or one below 0.

    Source: time.ParseDuration of Go.
    """
    if text == "0":
        return 0.0
    if not _WHOLE.fullmatch(text):
        return None
    return sum(float(amount) * _UNITS[unit] for amount, unit in _PARTS.findall(text))
