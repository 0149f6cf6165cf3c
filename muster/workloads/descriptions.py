"""What an object says of the gang that it will make, before there is a pod.

For whoever looks at manifests: the pods do not carry their controller's labels yet, so the object
is asked that the extender will ask later. A suspended object is asked as if it ran: queues suspend
every job first and let it go later.
"""

from collections.abc import Iterable, Mapping
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


@dataclass(frozen=True, slots=True)
class ReadObject:
    """An object that describes gangs, as it will be when it runs, and its reader."""

    watched: Watched[Any]
    #: its metadata and its spec as they were written, not suspended
    document: Mapping[str, object]
    #: the same as the reader's type
    typed: Any

    def specs(self) -> tuple[GangSpec, ...]:
        """Return the gangs that it describes."""
        found = self.watched.spec(self.typed)
        if found is None:
            return ()
        return found if isinstance(found, tuple) else (found,)


def described(api_version: str, kind: str, document: Mapping[str, object]) -> Described:
    """Return what a decoded object says; raises ``msgspec.ValidationError`` where it cannot be."""
    found = read_object(api_version, kind, document)
    if found is None:
        return Described(known=group_of(api_version) in _ALONE)
    first = next(iter(found.specs()), None)
    if first is None:
        return Described(known=True)
    return Described(known=True, dialect=first.dialect, size=first.size or None)


def read_object(api_version: str, kind: str, document: Mapping[str, object]) -> ReadObject | None:
    """Return a decoded object that describes gangs, or the one that it makes; else ``None``.

    A CronJob, a RayJob and a RayService make one that does. ``api_version``: "" for any group.
    Raises ``msgspec.ValidationError`` for an object that cannot be read.
    """
    plural, spec = f"{kind.lower()}s", document.get("spec")
    within = _at(api_version, plural, _WITHIN)
    if within is not None and isinstance(spec, Mapping):
        field, at = _WITHIN[within]
        inner = spec.get(field)
        inside = inner if isinstance(inner, Mapping) else {}
        return _as_running_inside(at, document, inside, field)
    known = _at(api_version, plural, _WATCHED)
    return None if known is None else _as_running(known, document)


def group_of(api_version: str) -> str:
    """Return the API group of an ``apiVersion``, "" for the core's."""
    return api_version.partition("/")[0] if "/" in api_version else ""


def _at(api_version: str, plural: str, known: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    """Return group and plural of a kind, of any group where none is written; ``None``: unknown."""
    if api_version:
        at = group_of(api_version), plural
        return at if at in known else None
    found = sorted(at for at in known if at[1] == plural)
    return found[0] if found else None  # of Jobs that is batch's


def _job_meta(cron: Mapping[str, object], job: Mapping[str, object]) -> dict[str, object]:
    """Return the metadata of a CronJob's Jobs: its name and namespace, its template's keys."""
    own, theirs = (each.get("metadata") or {} for each in (cron, job))
    if not isinstance(own, Mapping) or not isinstance(theirs, Mapping):
        return {}
    return {**{key: own[key] for key in ("name", "namespace") if key in own}, **theirs}


def _as_running_inside(
    at: tuple[str, str], document: Mapping[str, object], inside: Mapping[str, object], field: str
) -> ReadObject:
    """Return the object that another one makes; errors name the fields of the outer one."""
    outer = f"`$.spec.{field}"
    if field == "jobTemplate":
        inside, outer = {**inside, "metadata": _job_meta(document, inside)}, f"{outer}.spec"
    else:
        inside = {"metadata": document.get("metadata"), "spec": inside}
    try:
        return _as_running(at, inside)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(str(error).replace("`$.spec", outer, 1)) from error


def _as_running(at: tuple[str, str], document: Mapping[str, object]) -> ReadObject:
    watched, spec = _WATCHED[at], document.get("spec")
    running = {k: v for k, v in spec.items() if k != "suspend"} if isinstance(spec, Mapping) else {}
    whole = {"metadata": document.get("metadata") or {}, "spec": running}
    return ReadObject(watched, whole, msgspec.convert(whole, watched.type))
