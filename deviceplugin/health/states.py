"""The state of one device, and when it changes.

::

                        suspicion                    fatal
      ┌─────────┐ ───────────────────► ┌─────────┐ ────────────┐
      │ Healthy │                      │ Suspect │             │
      └─────────┘ ◄─────────────────── └─────────┘             │
        │     ▲     calm for a while      ▲                    │
        │     │                           │ suspicion          │
        │     │  held, and measured well  │ is left            │
        │     └──────────────┬────────────┘                    │
        │              ┌────────────┐                          │
        │              │ Recovering │ ──────────────┐          │
        │              └────────────┘    fatal      │          │
        │                    ▲                      ▼          │
        │        nothing     │               ┌───────────┐     │
        │        fatal left  └────────────── │ Unhealthy │ ◄───┘
        └──────────────────────────────────► └───────────┘
                        fatal

Healthy and Suspect devices are given to pods, Unhealthy and Recovering ones are not. Pods that
have a device keep it in every state: nothing here restarts one.

Hysteresis: a device is usable again only after a whole hold without a fatal cause, in which it was
measured. The hold doubles with each failure that follows the last one within a window, so a device
that fails again and again is soon left out for long. After a quiet window the first hold applies.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from deviceplugin.health.causes import HealthCause
from deviceplugin.health.config import Recovery


class HealthState(StrEnum):
    """The states of a device; see the module's drawing."""

    HEALTHY = "Healthy"
    SUSPECT = "Suspect"
    UNHEALTHY = "Unhealthy"
    RECOVERING = "Recovering"

    @property
    def usable(self) -> bool:
        """Whether pods may be given the device."""
        return self in {HealthState.HEALTHY, HealthState.SUSPECT}


ALLOWED: Final = frozenset(
    {
        (HealthState.HEALTHY, HealthState.SUSPECT),
        (HealthState.HEALTHY, HealthState.UNHEALTHY),
        (HealthState.SUSPECT, HealthState.HEALTHY),
        (HealthState.SUSPECT, HealthState.UNHEALTHY),
        (HealthState.UNHEALTHY, HealthState.RECOVERING),
        (HealthState.RECOVERING, HealthState.UNHEALTHY),
        (HealthState.RECOVERING, HealthState.HEALTHY),
        (HealthState.RECOVERING, HealthState.SUSPECT),
    }
)


@dataclass(frozen=True, slots=True)
class DeviceLife:
    """A device's state and history. Times in seconds, of the clock that ``step`` is given."""

    state: HealthState = HealthState.HEALTHY
    #: when the state began
    since: float = 0.0
    #: when the last cause ended; None while one lasts
    calm_since: float | None = 0.0
    #: failures in a row, each within the window after the one before
    failures: int = 0
    #: when the last failure began or ended
    failed: float = 0.0
    #: whether it was measured in this state
    measured: bool = False


def hold(life: DeviceLife, rules: Recovery) -> float:
    """Return for how long the device must be well, in seconds."""
    doublings = min(max(life.failures - 1, 0), 32)  # 2**32 of anything is beyond every maximum
    return float(min(rules.hold_seconds * 2**doublings, rules.max_hold_seconds))


def step(
    life: DeviceLife,
    causes: Sequence[HealthCause],
    now: float,
    rules: Recovery,
    *,
    measured: bool = False,
    wait: bool = False,
) -> DeviceLife:
    """Return the device's life at ``now``, with what is wrong then; at most one state further.

    ``measured``: it has just answered; without that it does not count as well. ``wait``: the GPU
    that it is a part of is not usable, so it is not either, even when its own hold is over.
    """
    if not causes and life.state is HealthState.HEALTHY and life.calm_since is not None:
        return life  # as nearly always
    life = replace(
        life,
        measured=life.measured or measured,
        calm_since=None if causes else _first(life.calm_since, now),
    )
    fatal = any(cause.fatal for cause in causes)
    match life.state:
        case HealthState.HEALTHY | HealthState.SUSPECT:
            return _fail(life, now, rules) if fatal else _judged(life, now, rules)
        case HealthState.UNHEALTHY:
            return life if fatal else _enter(replace(life, failed=now), HealthState.RECOVERING, now)
        case HealthState.RECOVERING:
            if fatal:
                return _fail(life, now, rules)
            return life if wait else _held(life, now, rules)


def _first(known: float | None, now: float) -> float:
    return now if known is None else known


def _enter(life: DeviceLife, state: HealthState, now: float) -> DeviceLife:
    return replace(life, state=state, since=now, measured=False)


def _fail(life: DeviceLife, now: float, rules: Recovery) -> DeviceLife:
    """Count a failure; one outside the window counts as the first again."""
    again = life.failures > 0 and now - life.failed <= rules.flap_window_seconds
    failures = life.failures + 1 if again else 1
    return _enter(replace(life, failures=failures, failed=now), HealthState.UNHEALTHY, now)


def _judged(life: DeviceLife, now: float, rules: Recovery) -> DeviceLife:
    """Return a usable device as Suspect while something is suspected and until it is calm."""
    if life.calm_since is None:
        suspected = life.state is HealthState.SUSPECT
        return life if suspected else _enter(life, HealthState.SUSPECT, now)
    if life.state is HealthState.SUSPECT and now - life.calm_since >= rules.calm_seconds:
        return _enter(life, HealthState.HEALTHY, now)
    return life


def _held(life: DeviceLife, now: float, rules: Recovery) -> DeviceLife:
    if now - life.since < hold(life, rules) or not life.measured:
        return life
    return _enter(
        life, HealthState.HEALTHY if life.calm_since is not None else HealthState.SUSPECT, now
    )
