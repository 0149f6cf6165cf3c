"""The last runs of a queue, as they stand in the status of Muster's own Queue.

::

    status:
      runTimes:
        at: "2026-11-28T14:00:00Z"
        last:                          the first end first
        - {namespace: team, template: train, endedAt: "2026-11-28T13:59:10Z", seconds: 5400}

Written at most once a minute, and only if it differs. What cannot be read counts as not written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from muster.workloads.queues.sight import Fields, moment

MOST: Final = 32  # runs of a queue, as the definition has it
INTERVAL_S: Final = 60.0  # at least between two writes
_LONGEST_S: Final = 100 * 365 * 86_400


class WrittenRun(NamedTuple):
    """A gang that ran to its end."""

    #: Seconds since the epoch.
    ended_at: int
    #: How long it ran, in seconds.
    seconds: int
    #: Its namespace.
    namespace: str
    #: Its name without the numbers at the end.
    template: str


@dataclass(frozen=True, slots=True)
class WrittenRuns:
    """The last runs of a queue, as a status has them."""

    #: Seconds since the epoch: when they were written.
    at: float
    #: The first end first.
    last: Sequence[WrittenRun]


def written_runs(status: Fields) -> WrittenRuns | None:
    """Return what the status of a Queue says, ``None``: nothing that can be read."""
    said = status.get("runTimes")
    if not isinstance(said, Mapping) or not isinstance(said.get("last"), list | tuple):
        return None
    try:
        return WrittenRuns(_seconds(said["at"]), [_run(one) for one in said["last"]][-MOST:])
    except (KeyError, TypeError, ValueError):
        return None


def run_times(before: object, runs: Sequence[WrittenRun], now: float) -> object:
    """Return the field ``runTimes`` as it should be, given what stands there.

    Whoever learned nothing leaves what stands. ``now``: seconds since the epoch.
    """
    rows = [_row(run) for run in runs[-MOST:]]
    if not rows or (isinstance(before, Mapping) and before.get("last") == rows):
        return before
    said = written_runs({"runTimes": before})
    # A time that has not come is of a clock ahead of this one: not waited for.
    if said is not None and 0 <= now - said.at < INTERVAL_S:
        return before
    return {"at": moment(now), "last": rows}


def _row(run: WrittenRun) -> dict[str, object]:
    return {
        "namespace": run.namespace,
        "template": run.template,
        "endedAt": moment(run.ended_at),
        "seconds": run.seconds,
    }


def _run(said: Mapping[str, object]) -> WrittenRun:
    seconds = said["seconds"]
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 <= seconds <= _LONGEST_S:
        raise ValueError(seconds)
    ended = int(_seconds(said["endedAt"]))
    return WrittenRun(ended, seconds, str(said["namespace"]), str(said["template"]))


def _seconds(at: object) -> float:
    found = datetime.fromisoformat(str(at))
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
