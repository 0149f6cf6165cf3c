"""Whether tolerations that are there already do what a new one would.

The rule of core/v1 Toleration (k8s.io/api, ``ToleratesTaint``): an empty key with ``Exists``
tolerates every taint, an empty effect every effect, ``Exists`` every value.
"""

from collections.abc import Iterable

from muster.kube.wire import Toleration


def tolerated(wanted: Toleration, present: Iterable[Toleration]) -> bool:
    """Return whether one of ``present`` tolerates all that ``wanted`` would, for as long."""
    for own in present:  # noqa: SIM110 - `any` is a call for each of them
        if own.key in ("", wanted.key) and _covers(own, wanted):
            return True
    return False


def _covers(own: Toleration, wanted: Toleration) -> bool:
    if own.effect not in ("", wanted.effect) or own.toleration_seconds not in (
        None,
        wanted.toleration_seconds,
    ):
        return False
    if own.operator == "Exists":
        return own.key in ("", wanted.key)
    return own.key == wanted.key and wanted.operator != "Exists" and own.value == wanted.value
