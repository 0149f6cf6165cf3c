"""What is told of devices' health: changes of state, Events, the node's condition. Values only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from deviceplugin.health.causes import HealthCause
from deviceplugin.health.states import HealthState

CONDITION: Final = "MusterDevicesHealthy"
NAMED: Final = 8  # devices that a condition names; a node has 8 GPUs and about as many NICs


class DeviceKind(StrEnum):
    """Of a device, as messages and metrics call it."""

    GPU = "GPU"
    MIG = "MIG instance"
    NIC = "NIC"


@dataclass(frozen=True, slots=True)
class Change:
    """A device went from one state to another at ``at`` seconds. ``causes``: fatal ones first."""

    device: str
    kind: DeviceKind
    was: HealthState
    state: HealthState
    causes: tuple[HealthCause, ...]
    at: float

    @property
    def text(self) -> str:
        """Say why: what is wrong, or that nothing is any more."""
        if self.state is HealthState.RECOVERING:
            return "nothing fatal is left; it is watched before pods are given it again"
        return "; ".join(map(str, self.causes)) or "well again"


@dataclass(frozen=True, slots=True)
class Event:
    """What an Event on the Node says. ``reason``: "DeviceUnhealthy" and so on."""

    warning: bool
    reason: str
    note: str


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition ``CONDITION`` of the Node; its message changes only with states and reasons.

    ``healthy``: None while nothing is known of its devices.
    """

    healthy: bool | None
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class DeviceStanding:
    """How a device stands now. ``parent``: UUID of a MIG instance's GPU."""

    device: str
    kind: DeviceKind
    state: HealthState
    causes: tuple[HealthCause, ...]
    since: float
    parent: str = ""


def event(change: Change) -> Event:
    """Return the Event that tells of ``change``."""
    warning = not change.state.usable and change.state is not HealthState.RECOVERING
    reason = f"Device{change.state}"
    return Event(warning, reason, f"{change.kind} {change.device}: {change.text}")


def condition(standings: Sequence[DeviceStanding]) -> Condition:
    """Return the condition of a node whose devices stand so."""
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
    """Return device → why, for those that pods are not to be given."""
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
