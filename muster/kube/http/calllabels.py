"""What a request to the API server is called in metrics: a verb and a resource, never a name."""

from collections.abc import Callable
from typing import Final

NO_ANSWER: Final = 0
OK: Final = 200  # stands for every success

Observer = Callable[[str, str, int, float], None]
"""Called after every attempt: verb, resource, status code (``OK``, ``NO_ANSWER``) and seconds."""

_CORE_DEPTH, _GROUP_DEPTH = 3, 4  # of the resource in "/api/v1/…" and in "/apis/GROUP/VERSION/…"
_VERBS: Final = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


def verb_and_resource(method: str, path: str, *, watches: bool = False) -> tuple[str, str]:
    """Return for instance ``patch`` and ``pods/status``, or ``podgroups.scheduling.run.ai``."""
    parts = path.split("/")
    core = parts[1] == "api"
    at = _CORE_DEPTH if core else _GROUP_DEPTH
    if len(parts) <= at:
        return _verb(method, named=True, watches=watches), "other"  # /version, for instance
    if parts[at : at + 1] == ["namespaces"] and len(parts) > at + 2:
        at += 2
    plural, *rest = parts[at:]
    resource = plural if core else f"{plural}.{parts[2]}"
    if len(rest) > 1:
        resource = f"{resource}/{rest[1]}"
    return _verb(method, named=bool(rest), watches=watches), resource


def _verb(method: str, *, named: bool, watches: bool) -> str:
    if method == "GET":
        return "watch" if watches else "get" if named else "list"
    return _VERBS.get(method, "other")
