"""What an object says of the gang that it will make, before there is a pod.

For whoever looks at manifests: the pods do not carry their controller's labels yet, so the object
is asked that the extender will ask later. A suspended object is asked as if it ran: queues suspend
every job first and let it go later.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from muster.cluster.specs.gangspec import GangSpec
from muster.workloads.dialect import Watched
from muster.workloads.registry import DIALECTS

_WATCHED: Final[Mapping[tuple[str, str], Watched[Any]]] = {
    (each.group, each.plural): each for dialect in DIALECTS for each in dialect.watched
}
_ALONE: Final = frozenset({"", "apps"})  # groups of kinds whose pods go one by one
_WITHIN: Final[Mapping[tuple[str, str], tuple[str, tuple[str, str]]]] = {
    ("batch", "cronjobs"): ("jobTemplate", ("batch", "jobs")),
    ("ray.io", "rayjobs"): ("rayClusterSpec", ("ray.io", "rayclusters")),
    ("ray.io", "rayservices"): ("rayClusterConfig", ("ray.io", "rayclusters")),
}


@dataclass(frozen=True, slots=True)
class Described:
    """``known``: whether the kind is one that tells. ``dialect``: "" for pods that go alone.

    ``size``: members of one gang, ``None`` where it does not say.
    """

    known: bool
    dialect: str = ""
    size: int | None = None


def described(api_version: str, kind: str, document: Mapping[str, object]) -> Described:
    """Return what a decoded object says; raises ``msgspec.ValidationError`` where it cannot be."""
    group = api_version.partition("/")[0] if "/" in api_version else ""
    at = group, f"{kind.lower()}s"
    spec = document.get("spec")
    if at in _WITHIN and isinstance(spec, Mapping):
        field, at = _WITHIN[at]
        inner = spec.get(field, {})
        inside = inner if field == "jobTemplate" else {"spec": inner}
        return _inside(at, inside if isinstance(inside, Mapping) else {}, field)
    if at in _WATCHED:
        return _asked(at, document)
    return Described(known=group in _ALONE)


def _inside(at: tuple[str, str], document: Mapping[str, object], field: str) -> Described:
    """Return the same of an object within another; errors name the fields of the outer one."""
    try:
        return _asked(at, document)
    except msgspec.ValidationError as error:
        outer = f"`$.spec.{field}" + (".spec" if field == "jobTemplate" else "")
        raise msgspec.ValidationError(str(error).replace("`$.spec", outer, 1)) from error


def _asked(at: tuple[str, str], document: Mapping[str, object]) -> Described:
    watched, spec = _WATCHED[at], document.get("spec")
    running = {k: v for k, v in spec.items() if k != "suspend"} if isinstance(spec, Mapping) else {}
    meta = document.get("metadata") or {}
    found = watched.spec(msgspec.convert({"metadata": meta, "spec": running}, watched.type))
    first: GangSpec | None = next(iter(found), None) if isinstance(found, tuple) else found
    if first is None:
        return Described(known=True)
    return Described(known=True, dialect=first.dialect, size=first.size or None)
