"""Requests to the API server in metrics: how many, how they ended, how long they took."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from muster.observability.metrics import histogram

_SUCCESS: Final = range(200, 300)
_FAILURE: Final = range(300, 600)


class ApiCalls:
    """Counts attempts; ``note`` fits ``muster.kube.http.calllabels.Observer``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._total = Counter(
            "muster_api_requests_total",
            "Requests to the API server, each attempt, by how it ended.",
            ("verb", "resource", "code"),
            registry=registry,
        )
        self._seconds: Histogram = histogram(
            registry,
            "muster_api_request_duration_seconds",
            "Time until the API server had answered, or not; of watches until they were open.",
            ("verb", "resource"),
        )
        # Children are cached: a release is little more than two of these calls.
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def note(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Count one attempt. ``code``: the HTTP status, 0 where there was no answer."""
        key = verb, resource, code
        found = self._children.get(key)
        if found is None:
            total = self._total.labels(verb, resource, _code(code))
            found = self._children[key] = total, self._seconds.labels(verb, resource)
        found[0].inc()
        found[1].observe(seconds)


def _code(code: int) -> str:
    """Return the label's value: ``2xx``, the status of a failure, ``none`` or ``other``."""
    if code in _SUCCESS:
        return "2xx"
    if code in _FAILURE:
        return str(code)
    return "none" if code == 0 else "other"
