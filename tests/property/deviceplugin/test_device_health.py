"""Health of devices under any order of readings, signals, inventories and hours.

Whatever comes: states change only along the drawing of ``deviceplugin.health.states``; a device is
never given to pods while something fatal stands, nor before it was well for the hold; a part is
never better than its whole; and all of them are well again when nothing is wrong for long enough.
"""

from collections.abc import Iterable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.devices.gpunodes import cut, gpu, instance, nic, node
from support.devices.illness import CUT, OTHER, PORT, SLICES, SOUND, reading

from deviceplugin.health.config import EccGrowth, HealthConfig, Recovery, TemperatureLimits, Xids
from deviceplugin.health.monitor import Monitor
from deviceplugin.health.reports import Change
from deviceplugin.health.states import ALLOWED, HealthState
from deviceplugin.health.xids import Effect
from deviceplugin.model.inventory import FabricState, NvlinkFabric
from deviceplugin.model.signals import (
    BackendDown,
    BackendUp,
    DeviceLost,
    GpuReading,
    NicReading,
    Reading,
    Signal,
    Xid,
)

GPUS = (SOUND, CUT, OTHER)
OWNERS = {OTHER: "rdma"}  # the others are those of whom they usually are
RULES = Recovery(
    hold_seconds=10,
    max_hold_seconds=80,
    flap_window_seconds=100,
    settle_seconds=5,
    forget_seconds=50,
    calm_seconds=7,
    suspect_seconds=20,
)
CONFIG = HealthConfig(
    recovery=RULES,
    temperature=TemperatureLimits(sustained_seconds=8),
    ecc_growth=EccGrowth(errors=3, window_seconds=30),
    xids=Xids(effects={94: Effect.UNHEALTHY}),
)
PARTS = (instance(1), instance(2, start=1))
JOINING = NvlinkFabric(FabricState.IN_PROGRESS)
NODES = {
    "whole": node(gpu(0), cut(1, *PARTS), gpu(2), nics=(nic(0, 0),)),
    "cut anew": node(gpu(0), cut(1, PARTS[0]), gpu(2), nics=(nic(0, 0),)),
    "without one": node(gpu(0), gpu(2), nics=(nic(0, 0),)),
    "joining": node(gpu(0, fabric=JOINING), cut(1, *PARTS), gpu(2), nics=(nic(0, 0),)),
}
ILL = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.sampled_from([79, 81, 84, 85, 88, 90, 95, None]),
        "ecc_corrected": st.integers(0, 9),
        "ecc_uncorrected": st.integers(0, 2),
        "remap_failed": st.booleans(),
        "remap_pending": st.booleans(),
        "links_down": st.integers(0, 1),
        "recovery_action": st.sampled_from([None, 0, 0, 1, 2, 9]),
    },
)
CODES = st.sampled_from([13, 48, 74, 79, 94, 95, 999])
INSTANCES = st.sampled_from([None, 1, 2, 7])
SIGNALS: st.SearchStrategy[Signal] = st.one_of(
    st.builds(Xid, st.sampled_from(GPUS), CODES, INSTANCES),
    st.builds(DeviceLost, st.sampled_from([*GPUS, PORT]), st.just("does not answer")),
    st.builds(BackendDown, st.sampled_from(["nvml", "rdma"]), st.just("hangs")),
    st.builds(BackendUp, st.sampled_from(["nvml", "rdma"])),
)


class Health(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.monitor = Monitor(CONFIG)
        self.now = 0.0
        self.states: dict[str, HealthState] = {}
        self.fatal_at: dict[str, float] = {}
        self.lost: set[str] = set()
        self.down: set[str] = set()
        self.due: set[str] = set()
        self.sees("whole")

    def _take(self, changes: Iterable[Change]) -> None:
        """Hold the changes to the drawing, and to what this test knows by itself."""
        standings = {each.device: each for each in self.monitor.standings()}
        for name, standing in standings.items():
            if name not in self.states and standing.parent in self.fatal_at:
                self.fatal_at[name] = self.fatal_at[standing.parent]  # cut from a GPU with a past
        for change in changes:
            assert (change.was, change.state) in ALLOWED
            assert self.states.get(change.device, change.was) is change.was
            assert change.state is standings[change.device].state
            if change.was is HealthState.RECOVERING and change.state.usable:
                assert self.now - self.fatal_at[change.device] >= RULES.hold_seconds
        for name, standing in standings.items():
            if any(cause.fatal for cause in standing.causes):
                self.fatal_at[name] = self.now
        self.states = {name: standing.state for name, standing in standings.items()}

    @rule(which=st.sampled_from(sorted(NODES)))
    def sees(self, which: str) -> None:
        found = NODES[which]
        changes = self.monitor.see(found, self.now, OWNERS)
        there = {each.uuid for each in found.gpus} | {PORT}
        self.lost &= there
        self.due &= there
        self.states = {name: state for name, state in self.states.items() if name in there}
        self._take(changes)

    @rule(gpus=st.dictionaries(st.sampled_from(GPUS), ILL), ports=st.sampled_from([(), (1,), (0,)]))
    def measures(self, gpus: dict[str, dict[str, object]], ports: tuple[int, ...]) -> None:
        readings: list[Reading] = [reading(uuid, **ill) for uuid, ill in gpus.items()]
        readings.append(NicReading(PORT, tuple((1, bool(up)) for up in ports)))
        here = {each.device for each in self.monitor.standings()} & gpus.keys()
        self.due -= here
        self.due |= {uuid for uuid in here if gpus[uuid].get("recovery_action", 0)}
        self.lost -= here | ({PORT} if ports else set())
        self._take(self.monitor.read(readings, self.now))

    @rule(uuid=st.sampled_from(GPUS))
    def a_gpu_says_nothing(self, uuid: str) -> None:
        self._take(self.monitor.read([GpuReading(uuid)], self.now))

    @rule(signal=SIGNALS)
    def hears(self, signal: Signal) -> None:
        match signal:
            case DeviceLost(device=device):
                self.lost |= {device} & {each.device for each in self.monitor.standings()}
            case BackendDown(backend=backend):
                self.down.add(backend)
            case BackendUp(backend=backend):
                self.down.discard(backend)
            case _:
                pass
        self._take(self.monitor.apply(signal, self.now))

    @rule(seconds=st.sampled_from([0.0, 1.0, 5.0, 11.0, 60.0, 500.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self._take(self.monitor.tick(self.now))

    @rule()
    def the_clock_of_a_caller_is_slow(self) -> None:
        self._take(self.monitor.tick(self.now - 1000))

    @invariant()
    def nothing_unwell_is_given_to_pods(self) -> None:
        for standing in self.monitor.standings():
            fatal = any(cause.fatal for cause in standing.causes)
            assert fatal == (standing.state is HealthState.UNHEALTHY)
            whole = standing.parent or standing.device
            owner = "rdma" if whole in {OTHER, PORT} else "nvml"
            if whole in self.lost | self.due or owner in self.down:
                assert not standing.state.usable, standing

    @invariant()
    def a_part_is_never_better_than_its_whole(self) -> None:
        for part in SLICES:
            if part in self.states and not self.states[CUT].usable:
                assert not self.states[part].usable

    def teardown(self) -> None:
        """Have nothing wrong for long enough: every device is well."""
        if not hasattr(self, "monitor"):
            return
        self.sees("whole")
        for backend in ("nvml", "rdma"):
            self.hears(BackendUp(backend))
        for _ in range(10):
            self.time_passes(20.0)
            self.measures({uuid: {} for uuid in GPUS}, (1,))
        assert set(self.states.values()) == {HealthState.HEALTHY}


TestHealth = Health.TestCase
