"""How long the API server waits for an answer: ``?timeout=`` of the request.

It is the webhook's ``timeoutSeconds`` or what is left of the request that is being admitted,
rounded up (apiserver, webhook/mutating/dispatcher.go), and written as Go writes durations. What
would be answered after that is wasted work.
"""

import functools
import re
from typing import Final
from urllib.parse import parse_qs

_PART: Final = re.compile(r"(\d+(?:\.\d*)?)(h|ms|m|s|us|µs|ns)")  # time.Duration.String
_UNITS_S: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
LONGEST_S: Final = 30.0  # admissionregistration/v1: timeoutSeconds is 1 to 30


@functools.lru_cache(maxsize=64)
def seconds(query: str) -> float:
    """Return how long the caller waits; ``LONGEST_S`` where the query string does not say."""
    text = parse_qs(query).get("timeout", [""])[0]
    parts = _PART.findall(text)
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        return LONGEST_S
    return min(LONGEST_S, sum(float(amount) * _UNITS_S[unit] for amount, unit in parts))
