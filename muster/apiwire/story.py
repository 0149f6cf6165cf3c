"""``GET /v1/story/pod/NAMESPACE/NAME`` and ``…/gang/…``: what happened, and what caused it.

``?limit=`` cuts the oldest entries off.
"""

from typing import Final

import msgspec

PATH: Final = "/v1/story"
MOST: Final = 1_000
"""Entries without ``?limit=``."""


class StoryEntry(msgspec.Struct, frozen=True):
    """One thing that happened in this replica."""

    #: kind and number, as "watch:12345"; numbers follow the order of time
    id: str
    #: id of the entry that it follows from, "" for none; "gone:12345" where it is no longer stored
    cause: str
    #: epoch seconds
    at: float
    #: list: objects of a first list; watch: an object as the API server has it; look: the planner
    #: begins with a gang; plan: a decision; hold: room is held; release: a write releases a pod;
    #: forget: a plan is given up; evict: a pod is evicted; timer: time passed
    kind: str
    #: NAMESPACE/NAME of the pod, "" for an entry about no pod or several pods
    pod: str
    #: keys of the gangs that it is about, or that it changed
    gangs: tuple[str, ...]
    #: what happened, for people
    what: str


class StoryAnswer(msgspec.Struct, frozen=True):
    """Entries about a pod or gang, their causes and their consequences; oldest first."""

    #: "pod" or "gang"
    kind: str
    #: NAMESPACE/NAME
    name: str
    #: most entries that the replica stores; 0: it stores none
    most: int
    #: epoch seconds of the oldest stored entry about anything; None: there is none
    since: float | None
    #: older entries of this story that were cut off
    left_out: int
    entries: tuple[StoryEntry, ...]
