"""What queues used on average, as it stands in the statuses of their objects.

::

    status:
      averageUse:
        at: "2026-11-28T14:00:00Z"
        amounts: {nvidia.com/gpu: 3512m}
        borrowed: {nvidia.com/gpu: 1200m}

Written at most once per interval, and only if it differs: an average that does not change needs no
new time, since whoever reads it goes on from what is used.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from muster.cluster.quota.cells import Cell
from muster.workloads.queues.averages.quantities import text, units
from muster.workloads.queues.sight import AverageSight, Fields, moment


@dataclass(frozen=True, slots=True)
class WrittenAverage:
    """An average as a status has it."""

    #: Seconds since the epoch.
    at: float
    #: By resource, in units of the model.
    amounts: Mapping[str, float]
    #: The same of what was used above what the queue was entitled to.
    borrowed: Mapping[str, float] = field(default_factory=dict)


def own_average(status: Fields) -> WrittenAverage | None:
    """Return what the status of Muster's own Queue says, ``None``: nothing that can be read."""
    said = status.get("averageUse")
    if not isinstance(said, Mapping):
        return None
    try:
        amounts, borrowed = _amounts(said["amounts"]), _amounts(said.get("borrowed") or {})
        return WrittenAverage(_seconds(said["at"]), amounts, borrowed)
    except (KeyError, TypeError, ValueError):  # QuantityError is a ValueError
        return None


def average_use(before: object, found: AverageSight, now: float) -> object:
    """Return the field ``averageUse`` as it should be, given what stands there."""
    said = own_average({"averageUse": before})
    wanted = {"amounts": texts(found.average), "borrowed": texts(found.borrowed)}
    if said is not None and now - said.at < found.interval:
        return before
    if isinstance(before, Mapping) and wanted.items() <= before.items():
        return before
    return {"at": moment(now), **wanted} if before or any(wanted.values()) else None


def local_average(status: Fields) -> WrittenAverage | None:
    """Return what the status of Kueue's LocalQueue says, ``None``: nothing that can be read."""
    sharing = status.get("fairSharing")
    said = sharing.get("admissionFairSharingStatus") if isinstance(sharing, Mapping) else None
    if not isinstance(said, Mapping):
        return None
    try:
        return WrittenAverage(_seconds(said["lastUpdate"]), _amounts(said["consumedResources"]))
    except (KeyError, TypeError, ValueError):
        return None


def local_fair_sharing(status: Fields, found: AverageSight, now: float) -> object:
    """Return the field ``fairSharing`` of a LocalQueue's status as it should be.

    ``weightedShare`` has to be there; a LocalQueue has no share (apis/kueue, FairSharingStatus).
    """
    before, said = status.get("fairSharing"), local_average(status)
    amounts = texts(found.average)
    if said is not None and now - said.at < found.interval:
        return before
    written = before.get("admissionFairSharingStatus") if isinstance(before, Mapping) else None
    if isinstance(written, Mapping) and written.get("consumedResources") == amounts:
        return before
    consumed = {"consumedResources": amounts, "lastUpdate": moment(now)}
    return {"weightedShare": 0, "admissionFairSharingStatus": consumed}


def texts(average: Mapping[Cell, float]) -> dict[str, str]:
    """Return averages by resource as quantities; what rounds to nothing is left out."""
    sums: dict[str, float] = {}
    for cell, amount in average.items():
        sums[cell.resource] = sums.get(cell.resource, 0.0) + amount
    found = ((resource, text(resource, amount)) for resource, amount in sorted(sums.items()))
    return {resource: one for resource, one in found if one != "0"}


def _seconds(at: object) -> float:
    found = datetime.fromisoformat(str(at))
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _amounts(written: object) -> dict[str, float]:
    if not isinstance(written, Mapping):
        raise TypeError(written)
    return {str(name): units(str(name), one) for name, one in written.items()}
