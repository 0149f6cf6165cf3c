"""When a device is unwell and when alerts are raised: a section of the configuration.

Unknown fields are errors (``muster.observability.configfile``), and ``problems`` names values that
are out of range or contradict each other.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from deviceplugin.health.xids import Effect

DAY_S: Final = 86400.0


class TemperatureLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """When a GPU is hot, and when it is overheated.

    It is hot at the lower of two limits: the configured one, and ``margin_celsius`` below the
    temperature at which it slows itself down. A hot GPU is suspect. It is unhealthy when it is hot
    for ``sustained_seconds`` or reaches the temperature at which it slows itself down.
    """

    #: limit for NVIDIA's GPUs; None: only their own slowdown temperature counts
    limit_celsius: int | None = 85
    #: limit for AMD's GPUs, whose drivers report the hottest spot (junction): under load it is well
    #: above 85 by design
    junction_limit_celsius: int | None = None
    #: distance of the second limit from the temperature at which a GPU slows itself down
    margin_celsius: int = 2
    #: a hot GPU counts as cool again so far below the limit
    hysteresis_celsius: int = 5
    #: after so long a hot GPU is overheated
    sustained_seconds: float = 30.0


class EccGrowth(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """From how many corrected ECC errors on a GPU is suspect; they never make it unhealthy."""

    #: from so many errors on
    errors: int = 100
    #: the time within which they are counted
    window_seconds: float = 3600.0


class Xids(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Xid codes that have another effect here than in the catalogue (``xids.yaml``)."""

    #: codes without effect: a short form of ``effects`` with "ignore"
    ignore: tuple[int, ...] = ()
    #: code → effect
    effects: dict[int, Effect] = {}
    #: effect of all other codes; None: the catalogue's
    others: Effect | None = None

    def overrides(self) -> dict[int, Effect]:
        """Return code → effect."""
        return {**dict.fromkeys(self.ignore, Effect.NONE), **self.effects}


class Recovery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """When errors are over, and how long a device must be well before pods are given it again."""

    #: the hold after the first failure; it doubles with each further failure within
    #: ``flap_window_seconds`` of the last
    hold_seconds: float = 30.0
    #: the longest hold
    max_hold_seconds: float = 1800.0
    #: a failure within this time after the last one is a further one; later it is the first again
    flap_window_seconds: float = 3600.0
    #: an Xid or an uncorrectable error is over when the driver has reported recovery action 0
    #: (nothing to do) for so long, or when the GPU was reset
    settle_seconds: float = 30.0
    #: the same with drivers that do not report the action: when no error has come for so long
    forget_seconds: float = 3600.0
    #: a device without a suspicion for so long is Healthy again
    calm_seconds: float = 60.0
    #: for how long an Xid that should be looked into makes a GPU suspect
    suspect_seconds: float = 600.0


class AlertThresholds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The thresholds of alerts, in per cent."""

    #: of the memory that programs can use
    memory_percent: float = 90.0
    #: of the GPU's power limit
    power_percent: float = 95.0
    #: utilisation below which a GPU counts as idle while a pod has it
    idle_percent: float = 30.0
    #: an idle GPU raises the alert after so long
    idle_seconds: float = 600.0
    #: an alert ends so far on the other side of its threshold
    hysteresis_percent: float = 2.0


class HealthConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The section ``health``."""

    temperature: TemperatureLimits = TemperatureLimits()
    ecc_growth: EccGrowth = EccGrowth()
    xids: Xids = Xids()
    recovery: Recovery = Recovery()
    alerts: AlertThresholds = AlertThresholds()


def problems(config: HealthConfig, where: str = "health") -> Iterator[str]:
    """Yield a line for each value that is not allowed; ``where``: name of the section."""
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
