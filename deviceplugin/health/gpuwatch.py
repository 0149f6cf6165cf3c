"""One GPU: causes from its readings, its errors and its place in the fabric."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from deviceplugin.health.causes import HealthCause, Reason
from deviceplugin.health.config import HealthConfig
from deviceplugin.health.ecc import Growth
from deviceplugin.health.incidents import Incidents
from deviceplugin.health.temperature import Heat
from deviceplugin.health.xids import Effect, XidTable
from deviceplugin.model.inventory import FabricState, Gpu, MigInstance, Vendor
from deviceplugin.model.signals import GpuReading, Xid

RECOVERY_ACTIONS: Final = (  # nvmlDeviceGpuRecoveryAction_t
    "none",
    "reset the GPU",
    "reboot the node",
    "drain peer-to-peer traffic",
    "drain peer-to-peer traffic and reset the GPU",
    "recover the IMEX domain",
    "reset the PCIe bus",
    "reboot the system",
)
_NOT_READY: Final = frozenset({FabricState.NOT_STARTED, FabricState.IN_PROGRESS})


class GpuWatch:
    """What is known of one GPU and its MIG instances."""

    def __init__(self, gpu: Gpu, config: HealthConfig, table: XidTable) -> None:
        self.gpu = gpu
        #: what errors mean
        self.table = table
        self._incidents = Incidents(config.recovery)
        self._heat = Heat(config.temperature, junction=gpu.vendor is Vendor.AMD)
        self._growth = Growth(config.ecc_growth)
        self._reading = GpuReading(gpu.uuid)
        self._uncorrected: int | None = None
        self._lost: str | None = None
        self._now = 0.0

    def read(self, reading: GpuReading, now: float) -> bool:
        """Take in what was measured; return whether the GPU answered at all."""
        if not _answered(reading):
            return False
        self._lost, self._reading = None, reading
        self._heat.read(reading.temperature, reading.slowdown_at, now)
        self._growth.read(reading.ecc_corrected, now)
        self._uncorrectable(reading, now)
        self._incidents.action(reading.recovery_action, now)
        return True

    def xid(self, error: Xid, now: float) -> None:
        """Take in an error that the driver reported."""
        verdict = self.table.verdict(error.code)
        if verdict.effect is Effect.NONE:
            return
        fatal = verdict.effect is Effect.UNHEALTHY
        figure = f"{error.code}: {verdict.means}" if verdict.means else str(error.code)
        cause = HealthCause(Reason.XID if fatal else Reason.XID_SUSPECT, figure)
        instance = self._named(error) if verdict.confined else None
        self._incidents.note(cause, instance.uuid if instance else "", now)

    def lost(self, why: str) -> None:
        """Take in that the GPU does not answer."""
        self._lost = why

    def pass_time(self, now: float) -> None:
        """Drop the errors that are over at ``now``."""
        self._now = now
        self._incidents.forget(now)

    def causes(self) -> tuple[HealthCause, ...]:
        """Return what is wrong with the whole GPU, and so with each of its instances."""
        return (*self._incidents.causes(), *self._standing())

    def instance_causes(self, uuid: str) -> tuple[HealthCause, ...]:
        """Return what is wrong with one MIG instance alone."""
        return tuple(self._incidents.causes(uuid))

    def _uncorrectable(self, reading: GpuReading, now: float) -> None:
        """Note new uncorrectable errors. A lower count than before means that the GPU was reset.

        Errors from before this process started count too, since their time is not known, unless
        the driver reports that nothing has to be done (recovery action 0).
        """
        count, known = reading.ecc_uncorrected, self._uncorrected
        if count is None:
            return
        if known is None:
            known = count if reading.recovery_action == 0 else 0
        if count < known:
            self._incidents.reset()
        if count > known:
            self._incidents.note(HealthCause(Reason.ECC_UNCORRECTABLE), "", now)
        self._uncorrected = count

    def _standing(self) -> Iterator[HealthCause]:
        reading = self._reading
        if self._lost is not None:
            yield HealthCause(Reason.LOST, self._lost)
        if reading.recovery_action:
            yield HealthCause(Reason.RECOVERY_DUE, _action(reading.recovery_action))
        if reading.remap_failed:
            yield HealthCause(Reason.REMAP_FAILED)
        if reading.remap_pending:
            yield HealthCause(Reason.REMAP_PENDING)
        yield from self._fabric()
        yield from filter(None, (self._heat.cause(), self._growth.cause(self._now)))

    def _fabric(self) -> Iterator[HealthCause]:
        fabric = self.gpu.fabric
        if fabric.state in _NOT_READY:
            yield HealthCause(Reason.FABRIC_NOT_READY, fabric.state.name)
        elif not fabric.healthy:
            yield HealthCause(Reason.FABRIC_UNHEALTHY)
        # MIG instances do not talk over NVLink (MIG User Guide: no GPU-to-GPU P2P).
        if self._reading.links_down and not (self.gpu.mig and self.gpu.mig.enabled):
            yield HealthCause(Reason.LINKS_DOWN, f"{self._reading.links_down}")

    def _named(self, error: Xid) -> MigInstance | None:
        """Return the MIG instance that an error names, None where it does not exist."""
        instances = self.gpu.mig.instances if self.gpu.mig else ()
        for instance in instances:
            if instance.gpu_instance == error.gpu_instance and error.compute_instance in {
                None,
                instance.compute_instance,
            }:
                return instance
        return None


def _answered(reading: GpuReading) -> bool:
    """Return whether a reading has any value; that of a lost GPU has none."""
    return any(
        getattr(reading, field.name) is not None
        for field in fields(reading)
        if field.name not in {"uuid", "instances"}
    )


def _action(code: int) -> str:
    known = 0 < code < len(RECOVERY_ACTIONS)
    return RECOVERY_ACTIONS[code] if known else f"action {code}"
