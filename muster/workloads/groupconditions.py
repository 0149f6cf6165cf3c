"""Conditions of PodGroups: one list, of which Muster keeps its own entries and no others.

Custom resources know no merging by key: the whole list is sent, as it was read but for ours.
The type has all the fields that any of the kinds gives its conditions, so none is lost.
"""

from datetime import UTC, datetime

import msgspec

from muster.kube import wire


class GroupCondition(wire.Wire, frozen=True):
    """meta/v1 Condition, Volcano's PodGroupCondition and KAI's SchedulingCondition."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0
    transition_id: str = msgspec.field(default="", name="transitionID")
    node_pool: str = ""


Conditions = tuple[GroupCondition, ...]


def with_condition(
    before: Conditions, type_: str, *, status: str, reason: str, message: str, at: float
) -> Conditions:
    """Return ``before`` with this entry in its place, ``before`` itself if it says so already.

    ``at``: since when, in seconds since the epoch; an entry of the same status keeps its time.
    """
    old = next((entry for entry in before if entry.type == type_), None)
    if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
        return before
    same = old is not None and old.status == status
    since = old.last_transition_time if old is not None and same else _moment(at)
    entry = GroupCondition(
        type=type_, status=status, reason=reason, message=message, last_transition_time=since
    )
    return tuple(entry if each is old else each for each in before) + (() if old else (entry,))


def without_condition(before: Conditions, type_: str) -> Conditions:
    """Return ``before`` without the entry of a type."""
    return tuple(entry for entry in before if entry.type != type_)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
