"""Who wrote an object's status last.

Two programs that write one status would overwrite each other for ever. So Muster leaves a status
alone that a project's own controller writes. The API server knows: it keeps for each writer which
fields it changed, and when (``metadata.managedFields``), and sends that with the object. No request
is needed, and a restart forgets nothing::

    newest writer of the status     Muster, or nobody        a controller, or a person
    Muster                          writes                   leaves it alone

A controller that starts beside Muster changes something sooner or later; from then on it is the
newest, and has the status for itself. A status that a removed controller left behind stays as it is
until somebody removes it: ``kubectl patch --subresource=status --type=merge -p {"status":null}``.
"""

from datetime import UTC, datetime
from typing import Final

import msgspec

from muster.kube import wire

_LONG_AGO: Final = datetime.fromtimestamp(0, UTC)


class ManagedFields(wire.Wire, frozen=True):
    """meta/v1 ManagedFieldsEntry."""

    manager: str = ""
    subresource: str = ""
    time: datetime | None = None
    fields_v1: dict[str, object] = msgspec.field(default_factory=dict)


class StatusMeta(wire.ObjectMeta, frozen=True):
    """meta/v1 ObjectMeta, with who wrote which fields. Pods are read without: it is long."""

    managed_fields: tuple[ManagedFields, ...] = ()


def is_ours(meta: StatusMeta, program: str) -> bool:
    """Return whether a program may write a status: nobody else changed it since the program did.

    ``program``: its name in requests; replicas add their own names in brackets. Times are seconds:
    of two writers in one second the other one counts.
    """
    ours, theirs = _LONG_AGO, None
    for entry in meta.managed_fields:
        if "f:status" not in entry.fields_v1:
            continue
        at = entry.time or _LONG_AGO
        if entry.manager == program or entry.manager.startswith(f"{program} ("):
            ours = max(ours, at)
        else:
            theirs = max(theirs or at, at)
    return theirs is None or theirs < ours
