"""Reports of devices' health: changes of state, Events, the node's condition. Values only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from deviceplugin.health.causes import HealthCause
from deviceplugin.health.states import HealthState

CONDITION: Final = "MusterDevicesHealthy"
NAMED: Final = 8  # devices that a condition names; a node has 8 GPUs and about as many NICs


class DeviceKind(StrEnum):
    """Kinds of devices, as messages and metrics name them."""

    GPU = "GPU"
    MIG = "MIG instance"
    NIC = "NIC"


@dataclass(frozen=True, slots=True)
class Change:
    """A device went from one state to another."""

    device: str
    kind: DeviceKind
    was: HealthState
    state: HealthState
    #: fatal ones first
    causes: tuple[HealthCause, ...]
    #: seconds of the monitor's clock
    at: float

    @property
    def text(self) -> str:
        """The causes in words, or that the device is well again."""
        if self.state is HealthState.RECOVERING:
            return "nothing fatal is left; it is watched before pods are given it again"
        return "; ".join(map(str, self.causes)) or "well again"


@dataclass(frozen=True, slots=True)
class Event:
    """An Event about the Node."""

    warning: bool
    #: "DeviceUnhealthy" and the like
    reason: str
    #: the text
    note: str


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition ``CONDITION`` of the Node; its message changes only with states and reasons."""

    #: None while no devices are known
    healthy: bool | None
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class DeviceStanding:
    """A device's state of health now."""

    device: str
    kind: DeviceKind
    state: HealthState
    #: what is wrong now, fatal causes first
    causes: tuple[HealthCause, ...]
    #: when the state began, seconds of the monitor's clock
    since: float
    #: UUID of the GPU that a MIG instance is on, else ""
    parent: str = ""


def event(change: Change) -> Event:
    """Return the Event for ``change``."""
    warning = not change.state.usable and change.state is not HealthState.RECOVERING
    reason = f"Device{change.state}"
    return Event(warning, reason, f"{change.kind} {change.device}: {change.text}")


def condition(standings: Sequence[DeviceStanding]) -> Condition:
    """Return the condition of a node with these devices."""
    if not standings:
        return Condition(None, "NoDevices", "no devices are known")
    out = [one for one in standings if not one.state.usable]
    if out:
        return Condition(False, "DevicesUnusable", _sentence(out, len(standings)))
    suspects = [one for one in standings if one.state is HealthState.SUSPECT]
    if suspects:
        return Condition(True, "DevicesSuspect", _sentence(suspects, len(standings)))
    return Condition(True, "AllDevicesHealthy", f"{len(standings)} devices")


def _sentence(chosen: Sequence[DeviceStanding], total: int) -> str:
    named = "; ".join(_named(one) for one in chosen[:NAMED])
    more = f"; and {len(chosen) - NAMED} more" if len(chosen) > NAMED else ""
    return f"{len(chosen)} of {total} devices: {named}{more}"


def _named(one: DeviceStanding) -> str:
    why = f" ({', '.join(str(cause.reason) for cause in one.causes)})" if one.causes else ""
    return f"{one.kind} {one.device} {one.state}{why}"


def ill(standings: Sequence[DeviceStanding]) -> Mapping[str, str]:
    """Return device → why, for those that pods are not given."""
    return {one.device: _why(one) for one in standings if not one.state.usable}


def _why(one: DeviceStanding) -> str:
    return "; ".join(map(str, one.causes)) or str(one.state)


def by_state(standings: Sequence[DeviceStanding]) -> Mapping[tuple[DeviceKind, HealthState], int]:
    """Return how many devices of each kind there are in each state, zeros included."""
    counts = {
        (kind, state): 0
        for kind in sorted({one.kind for one in standings})
        for state in HealthState
    }
    for one in standings:
        counts[one.kind, one.state] += 1
    return counts
