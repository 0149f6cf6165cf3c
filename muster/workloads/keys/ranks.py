"""The position of a pod inside its job, read from what controllers write on it."""

from collections.abc import Iterable
from typing import Final

from muster.kube import wire
from muster.workloads.dialect import NO_RANK
from muster.workloads.wholenumbers import whole

COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"  # Job controller, Indexed
POD_INDEX: Final = "apps.kubernetes.io/pod-index"  # StatefulSet controller
RANK_KEYS: Final = (COMPLETION_INDEX, POD_INDEX)
MAX_RANK: Final = 2**31 - 1  # ranks live in int32 columns


def index(meta: wire.ObjectMeta, key: str) -> int:
    """Return a label or annotation as a number from 0 to ``MAX_RANK``, else ``NO_RANK``."""
    text = meta.labels.get(key) or meta.annotations.get(key) or ""
    number = whole(text, MAX_RANK)
    return NO_RANK if number is None else number


def pod_rank(meta: wire.ObjectMeta) -> int:
    """Return the completion index of a Job's pod or the ordinal of a StatefulSet's."""
    rank = index(meta, COMPLETION_INDEX)
    return rank if rank != NO_RANK else index(meta, POD_INDEX)


def told_by(meta: wire.ObjectMeta, keys: Iterable[str]) -> tuple[bool, str] | None:
    """Return which of ``keys`` tells a pod's rank, and whether it is a label; None for no rank."""
    for key in keys:
        if index(meta, key) != NO_RANK:
            return bool(meta.labels.get(key)), key
    return None
