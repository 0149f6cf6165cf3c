"""Why a device is not well: a reason from a fixed set, and a figure.

The reasons are stable, since they become label values and parts of Events. The figure differs from
one time to the next.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """What is wrong. With reasons of ``SUSPICIONS`` alone, pods are still given the device."""

    XID = "Xid"
    XID_SUSPECT = "XidToLookInto"
    ECC_UNCORRECTABLE = "UncorrectableEcc"
    ECC_GROWTH = "CorrectableEccGrowth"
    REMAP_FAILED = "RowRemapFailed"
    REMAP_PENDING = "RowRemapPending"
    RECOVERY_DUE = "RecoveryActionDue"
    OVERHEATED = "Overheated"
    HOT = "Hot"
    LINKS_DOWN = "NvLinkDown"
    FABRIC_NOT_READY = "FabricNotReady"
    FABRIC_UNHEALTHY = "FabricUnhealthy"
    PORTS_DOWN = "PortsDown"
    PORT_DOWN = "PortDown"
    LOST = "DeviceLost"
    BACKEND_DOWN = "BackendDown"


SUSPICIONS: Final = frozenset(
    {
        Reason.XID_SUSPECT,
        Reason.ECC_GROWTH,
        # NVIDIA, "Error Recovery and Response Flags": with a remap pending programs run on, and
        # new ones may start; rows are remapped at the next reset.
        Reason.REMAP_PENDING,
        Reason.HOT,
        Reason.FABRIC_UNHEALTHY,
        Reason.PORT_DOWN,
    }
)


@dataclass(frozen=True, slots=True)
class HealthCause:
    """One thing that is wrong now."""

    reason: Reason
    #: what was measured ("92 C, limit 85 C")
    figure: str = ""

    @property
    def fatal(self) -> bool:
        """Whether the device must not be given to pods while this cause lasts."""
        return self.reason not in SUSPICIONS

    def __str__(self) -> str:
        """Return the reason, and the figure where there is one."""
        return f"{self.reason} ({self.figure})" if self.figure else str(self.reason)


def ranked(causes: Iterable[HealthCause]) -> tuple[HealthCause, ...]:
    """Return ``causes`` with the fatal ones first, in a stable order."""
    return tuple(sorted(causes, key=lambda cause: (not cause.fatal, cause.reason, cause.figure)))
