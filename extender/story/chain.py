"""The entries about a pod or a gang, with their causes and what followed from them."""

from collections.abc import Callable, Sequence
from typing import Final

from extender.story.entries import Entry
from muster.cluster.ids import PodUid
from muster.cluster.resumable import Steps

AT_ONCE: Final = 512  # entries between two steps: some 0.1 ms

About = Callable[[Entry], bool]


def of_pod(uids: frozenset[PodUid]) -> About:
    """Return whether an entry names one of these pods."""
    return lambda entry: not uids.isdisjoint(entry.uids)


def of_gang(namespace: str, name: str) -> About:
    """Return whether an entry names a gang of this name, of whatever dialect."""
    named = f"{namespace}/{name}"
    return lambda entry: any(key.partition("/")[2] == named for key in entry.gangs)


def chain(entries: Sequence[Entry], about: About) -> Steps[list[Entry]]:
    """Return the entries ``about`` something, their causes, and what followed from them, in order.

    ``entries``: oldest first, with numbers without gaps. Other effects of a cause are left out.
    Yields every ``AT_ONCE`` entries.
    """
    found: set[int] = set()
    for place, entry in enumerate(entries):
        if about(entry) or entry.cause in found:
            found.add(entry.number)
        if not place % AT_ONCE:
            yield
    first = entries[0].number if entries else 0
    for number in list(found):
        cause = entries[number - first].cause
        while cause >= max(first, 1) and cause not in found:
            found.add(cause)
            cause = entries[cause - first].cause
    return [entries[number - first] for number in sorted(found)]
