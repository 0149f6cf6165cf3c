"""When a device is unwell and when somebody is to be alerted: a section of the configuration.

Strict: unknown fields are errors (``muster.observability.configfile``), and ``problems`` names
values that make no sense.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from deviceplugin.health.xids import Effect

DAY_S: Final = 86400.0


class TemperatureLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A GPU is hot at ``limit_celsius``, or ``margin_celsius`` below where it slows itself down.

    Whichever is lower; a limit of null leaves the latter alone. Hot is suspect; hot for
    ``sustained_seconds``, or slowing itself down, is unhealthy. It is hot until
    ``hysteresis_celsius`` below that.

    AMD's drivers tell the hottest spot (junction), which is well above 85 under load by design;
    it has a limit of its own.
    """

    limit_celsius: int | None = 85
    junction_limit_celsius: int | None = None
    margin_celsius: int = 2
    hysteresis_celsius: int = 5
    sustained_seconds: float = 30.0


class EccGrowth(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """So many corrected errors within so long make a GPU suspect, and no more than that."""

    errors: int = 100
    window_seconds: float = 3600.0


class Xids(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What codes mean here, in the catalogue's place. ``ignore``: short for "ignore" in it."""

    ignore: tuple[int, ...] = ()
    effects: dict[int, Effect] = {}

    def overrides(self) -> dict[int, Effect]:
        """Return code → effect."""
        return {**dict.fromkeys(self.ignore, Effect.NONE), **self.effects}


class Recovery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How long a device must be well before it is given to pods again.

    ``hold_seconds`` after the first failure, twice as long after each further one within
    ``flap_window_seconds`` of the last, at most ``max_hold_seconds``.

    An Xid or an uncorrectable error is over when the driver has said for ``settle_seconds`` that
    the GPU needs nothing (recovery action 0), or when the GPU was reset. Drivers that cannot say
    so: when none has come for ``forget_seconds``. Suspicion ends after ``calm_seconds``.
    """

    hold_seconds: float = 30.0
    max_hold_seconds: float = 1800.0
    flap_window_seconds: float = 3600.0
    settle_seconds: float = 30.0
    forget_seconds: float = 3600.0
    calm_seconds: float = 60.0
    suspect_seconds: float = 600.0
    """For how long an Xid that is to be looked into makes a GPU suspect."""


class AlertThresholds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """In per cent. An alert ends ``hysteresis_percent`` on the other side of its threshold."""

    memory_percent: float = 90.0
    power_percent: float = 95.0
    idle_percent: float = 30.0
    idle_seconds: float = 600.0
    """Utilisation below ``idle_percent`` for so long, while a pod holds the device."""
    hysteresis_percent: float = 2.0


class HealthConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The section ``health``."""

    temperature: TemperatureLimits = TemperatureLimits()
    ecc_growth: EccGrowth = EccGrowth()
    xids: Xids = Xids()
    recovery: Recovery = Recovery()
    alerts: AlertThresholds = AlertThresholds()


def problems(config: HealthConfig, where: str = "health") -> Iterator[str]:
    """Yield a line for each value that makes no sense; ``where``: the section's own name."""
    for field, value, low, high in _bounds(config):
        if not low <= value <= high:
            yield f"{where}.{field}: {value:g} is out of range; allowed is {low:g} to {high:g}"
    recovery = config.recovery
    if recovery.max_hold_seconds < recovery.hold_seconds:
        yield (
            f"{where}.recovery.maxHoldSeconds: {recovery.max_hold_seconds:g} is less than"
            f" holdSeconds, {recovery.hold_seconds:g}; give at least that"
        )
    if recovery.flap_window_seconds <= recovery.max_hold_seconds:
        yield (
            f"{where}.recovery.flapWindowSeconds: {recovery.flap_window_seconds:g} is not more than"
            f" maxHoldSeconds, {recovery.max_hold_seconds:g}: the hold would never grow; give more"
        )
    for code in sorted({*config.xids.ignore} & {*config.xids.effects}):
        yield f"{where}.xids: {code} is in ignore and in effects; leave it in one of them"


def _bounds(config: HealthConfig) -> tuple[tuple[str, float, float, float], ...]:
    temperature, recovery, alerts = config.temperature, config.recovery, config.alerts
    limit, junction = temperature.limit_celsius, temperature.junction_limit_celsius
    return (
        ("temperature.limitCelsius", 85 if limit is None else limit, 30, 120),
        ("temperature.junctionLimitCelsius", 85 if junction is None else junction, 30, 120),
        ("temperature.marginCelsius", temperature.margin_celsius, 0, 40),
        ("temperature.hysteresisCelsius", temperature.hysteresis_celsius, 1, 40),
        ("temperature.sustainedSeconds", temperature.sustained_seconds, 0, DAY_S),
        ("eccGrowth.errors", config.ecc_growth.errors, 1, 10**9),
        ("eccGrowth.windowSeconds", config.ecc_growth.window_seconds, 1, 7 * DAY_S),
        ("recovery.holdSeconds", recovery.hold_seconds, 0, DAY_S),
        ("recovery.maxHoldSeconds", recovery.max_hold_seconds, 0, DAY_S),
        ("recovery.flapWindowSeconds", recovery.flap_window_seconds, 1, 7 * DAY_S),
        ("recovery.settleSeconds", recovery.settle_seconds, 0, DAY_S),
        ("recovery.forgetSeconds", recovery.forget_seconds, 1, 7 * DAY_S),
        ("recovery.calmSeconds", recovery.calm_seconds, 0, DAY_S),
        ("recovery.suspectSeconds", recovery.suspect_seconds, 1, DAY_S),
        ("alerts.memoryPercent", alerts.memory_percent, 1, 100),
        ("alerts.powerPercent", alerts.power_percent, 1, 100),
        ("alerts.idlePercent", alerts.idle_percent, 0, 100),
        ("alerts.idleSeconds", alerts.idle_seconds, 1, DAY_S),
        ("alerts.hysteresisPercent", alerts.hysteresis_percent, 0, 50),
    )
