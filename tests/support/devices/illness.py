"""Devices that fall ill in tests: a small node, a clock in the test's hand, good readings."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from support.devices.gpunodes import cut, gpu, instance, nic, node

from deviceplugin.health.config import HealthConfig
from deviceplugin.health.monitor import Monitor
from deviceplugin.health.reports import Change
from deviceplugin.health.states import HealthState
from deviceplugin.model.inventory import Inventory
from deviceplugin.model.signals import GpuReading, NicReading, Reading, Signal

SOUND, CUT, OTHER = "GPU-00000000", "GPU-00000001", "GPU-00000002"
SLICES = ("MIG-00000001", "MIG-00000002")
PORT = "mlx5_0"

WELL = GpuReading(
    SOUND,
    temperature=50,
    slowdown_at=90,
    utilisation=90,
    memory_used=10_000,
    memory_free=30_000,
    power=200.0,
    power_limit=400.0,
    ecc_corrected=0,
    ecc_uncorrected=0,
    remap_pending=False,
    remap_failed=False,
    links_down=0,
    recovery_action=0,
)


def small_node() -> Inventory:
    """Return two whole GPUs, one with two MIG instances between them, and a NIC."""
    parts = instance(1), instance(2, start=1)
    return node(gpu(0), cut(1, *parts), gpu(2), nics=(nic(0, 0),))


def reading(device: str = SOUND, **changes: object) -> GpuReading:
    return replace(WELL, uuid=device, **changes)  # type: ignore[arg-type]


@dataclass
class Ward:
    """A monitor of ``small_node`` that has been read once, at second 0."""

    config: HealthConfig = field(default_factory=HealthConfig)
    now: float = 0.0
    sick: dict[str, Reading] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.monitor = Monitor(self.config)
        self.note(self.monitor.see(small_node(), self.now))
        self.read()

    def note(self, changes: Iterable[Change]) -> None:
        self.changes.extend(changes)

    def read(self) -> None:
        """Measure every device: ``sick`` as it says, the others well."""
        gpus = (reading(device) for device in (SOUND, CUT, OTHER))
        well: dict[str, Reading] = {each.uuid: each for each in gpus}
        well[PORT] = NicReading(PORT, ((1, True),))
        self.note(self.monitor.read((well | self.sick).values(), self.now))

    def hear(self, signal: Signal) -> None:
        self.note(self.monitor.apply(signal, self.now))

    def pass_time(self, seconds: float, step: float = 5.0) -> None:
        """Let time pass, measuring as often as a plugin does."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(self.now + step, end)
            self.read()

    def falls_ill(self, **changes: object) -> None:
        self.sick[SOUND] = reading(**changes)
        self.read()

    def is_well_again(self) -> None:
        self.sick.clear()
        self.read()

    def state(self, device: str = SOUND) -> HealthState:
        return self.monitor.state(device)

    def reasons(self, device: str = SOUND) -> list[str]:
        standing = next(each for each in self.monitor.standings() if each.device == device)
        return [str(cause.reason) for cause in standing.causes]
