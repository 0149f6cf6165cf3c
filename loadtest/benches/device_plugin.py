"""`muster bench device-plugin`: the device plugin as a program, on simulated devices, real sockets.

::

    plugin ── unix socket ── this process, in the kubelet's place

    preferred   GetPreferredAllocation for changing sizes and sets of free devices, in turns with a
                call of the same server that does nothing (GetDevicePluginOptions)
    list        from a fault's being switched on until the message that tells of it has been read
    memory      PSS of the plugin and its children
    idle        CPU time of all of them while nothing happens

8 devices are a DGX H100; more are such machines side by side in one PCI tree each, every GPU on the
same NVSwitches, which no real node has: it is the search that is measured. The client shares the
machine.

``preferred_p99_ms`` and ``noop_p99_ms`` are of the same run; ``p99_ratio_to_noop`` is the one over
the other. ``cpu_us_per_preferred`` and ``cpu_us_per_noop``: CPU time of the plugin for a call, in
turns of many. ``list_ms``: median and longest. ``idle_percent``: of one core. ``pss_mib``: of the
plugin alone where the devices are simulated; NVML's child comes on top where they are not.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from grpc import aio

from loadtest.testbed.controlplane.process import Children
from loadtest.testbed.controlplane.procfs import cpu_seconds
from muster.protogen import deviceplugin_v1beta1_pb2 as pb
from muster.protogen.deviceplugin_v1beta1_pb2_grpc import DevicePluginStub

_WARM_UP: Final = 50  # calls of each kind: the connection, the interpreter's specialisation
_COST_TURNS: Final = 15  # of each kind of call: CPU time is read between them
_FAULTS: Final = 8  # each of another GPU: one that was ill is watched for half a minute
_PAUSE_S: Final = 0.35  # between faults: no multiple of how often the simulation looks
_BOX: Final = 8  # GPUs of one machine
_SHIPPED: Final = Path(__file__).parents[2] / "deviceplugin/machines/dgx-h100.yaml"
_RESOURCE: Final = "nvidia.com-gpu"  # as it stands in the socket's name
_READY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked on the command line."""

    devices: int = 8
    calls: int = 2000
    #: How long the plugin is measured without any work.
    idle_seconds: float = 20.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be measured."""
        if self.devices < _BOX or self.devices % _BOX:
            raise ValueError(f"--devices {self.devices}: must be a multiple of {_BOX}")
        if self.calls < 1:
            raise ValueError(f"--calls {self.calls}: must be at least 1")
        if self.idle_seconds <= 0:
            raise ValueError(f"--idle-seconds {self.idle_seconds}: must be more than 0")


def run(settings: Settings) -> dict[str, object]:
    """Measure; returns the figures under the keys that the module explains."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> dict[str, object]:
    async with AsyncExitStack() as stack:
        # A short path: a socket's has at most 107 bytes.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mb-")))
        (folder / "device-plugins").mkdir()
        faults = folder / "faults.yaml"
        children = await stack.enter_async_context(Children(folder))
        plugin, _ = await children.start_module(
            "plugin",
            "deviceplugin",
            *("--simulate", _machine(folder, settings.devices), "--node-name", "bench"),
            *("--kubelet-dir", str(folder), "--faults", str(faults), "--port", "0", "--no-cluster"),
            *("--cdi-dir", str(folder / "cdi")),
        )
        socket = await _socket(folder / "device-plugins")
        channel = await stack.enter_async_context(
            aio.insecure_channel(
                f"unix:{socket}", options=(("grpc.default_authority", "localhost"),)
            )
        )
        stub = DevicePluginStub(channel)
        stream = stub.ListAndWatch(pb.Empty())
        lists = aiter(stream)
        ids = [device.ID for device in (await anext(lists)).devices]
        return {
            "devices": len(ids),
            "calls": settings.calls,
            **await _preferred(stub, ids, settings),
            **await _costs(stub, ids, settings, plugin.pid),
            "idle_percent": await _idle(plugin.pid, settings.idle_seconds),
            "pss_mib": sum(map(_pss_mib, _family(plugin.pid))),
            **await _lists(lists, faults),
        }


# --- the three questions ----------------------------------------------------------------


async def _preferred(
    stub: DevicePluginStub, ids: Sequence[str], settings: Settings
) -> dict[str, object]:
    """Time choices and no-ops in turns."""
    took: dict[str, list[float]] = {"preferred": [], "noop": []}
    requests = itertools.islice(_requests(ids, settings.seed), settings.calls + _WARM_UP)
    for number, request in enumerate(requests):
        started = time.perf_counter()
        await stub.GetDevicePluginOptions(pb.Empty())
        between = time.perf_counter()
        answer = await stub.GetPreferredAllocation(request)
        ended = time.perf_counter()
        _check(request, answer)
        if number >= _WARM_UP:
            took["noop"].append(between - started)
            took["preferred"].append(ended - between)
    found = {
        f"{name}_{quantile}_ms": 1e3 * _quantile(times, share)
        for name, times in took.items()
        for quantile, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
    }
    return {**found, "p99_ratio_to_noop": found["preferred_p99_ms"] / found["noop_p99_ms"]}


async def _costs(
    stub: DevicePluginStub, ids: Sequence[str], settings: Settings, pid: int
) -> dict[str, float]:
    """Return the plugin's CPU time for a call of either kind, in microseconds."""
    requests = _requests(ids, settings.seed)
    calls = -(-settings.calls // _COST_TURNS)
    spent: dict[str, list[float]] = {"preferred": [], "noop": []}
    for _ in range(_COST_TURNS):
        before = cpu_seconds(pid)
        for _ in range(calls):
            await stub.GetDevicePluginOptions(pb.Empty())
        between = cpu_seconds(pid)
        for request in itertools.islice(requests, calls):
            await stub.GetPreferredAllocation(request)
        spent["noop"].append(between - before)
        spent["preferred"].append(cpu_seconds(pid) - between)
    return {
        f"cpu_us_per_{kind}": 1e6 * statistics.median(turns) / calls
        for kind, turns in spent.items()
    }


def _requests(ids: Sequence[str], seed: int) -> Iterator[pb.PreferredAllocationRequest]:
    """Yield what a node in use is asked: some devices are free, and a power of two is wanted."""
    rng = random.Random(seed)
    while True:
        free = rng.sample(ids, rng.randint(1, len(ids)))
        size = min(len(free), 1 << rng.randrange(len(ids).bit_length()))
        request = pb.PreferredAllocationRequest()
        request.container_requests.add(available_deviceIDs=free, allocation_size=size)
        yield request


def _check(request: pb.PreferredAllocationRequest, answer: pb.PreferredAllocationResponse) -> None:
    (asked,), (answered,) = request.container_requests, answer.container_responses
    chosen = set(answered.deviceIDs)
    if len(chosen) != asked.allocation_size or not chosen <= set(asked.available_deviceIDs):
        raise RuntimeError(f"a choice of {len(chosen)} is not what was asked: {request}")


async def _lists(lists: AsyncIterator[pb.ListAndWatchResponse], faults: Path) -> dict[str, object]:
    """Time from faults to the messages that tell of them."""
    took = []
    for gpu in range(_FAULTS):
        await asyncio.sleep(_PAUSE_S)
        lost = "".join(f"  {number}: {{lost: bench}}\n" for number in range(gpu + 1))
        waiting = asyncio.ensure_future(anext(lists))
        started = time.perf_counter()
        _replace(faults, f"gpus:\n{lost}")
        message = await waiting
        took.append(1e3 * (time.perf_counter() - started))
        ill = sum(device.health == "Unhealthy" for device in message.devices)
        if ill != gpu + 1:
            raise RuntimeError(f"{gpu + 1} GPUs are lost, {ill} are reported as unhealthy")
    return {"list_median_ms": statistics.median(took), "list_max_ms": max(took)}


async def _idle(pid: int, seconds: float) -> float:
    """Return the share of a core that a program takes while nothing happens, in per cent."""
    before = sum(map(cpu_seconds, _family(pid)))
    started = time.monotonic()
    await asyncio.sleep(seconds)
    used = sum(map(cpu_seconds, _family(pid))) - before
    return 100 * used / (time.monotonic() - started)


# --- the machine, and what Linux tells of a program ----------------------------------------


def _machine(folder: Path, devices: int) -> str:
    """Return a machine's name for `--simulate`: a file where none that is shipped is so large."""
    if devices == _BOX:
        return "dgx-h100"
    # Places as a DGX has them: a switch for each GPU, four GPUs on a socket, a PCI domain each.
    shipped: dict[str, object] = yaml.safe_load(_SHIPPED.read_bytes())
    shipped |= {"name": "many", "product": "several machines in one", "layouts": {}, "nics": []}
    shipped["gpus"] = [
        {
            "address": f"{box:04x}:{slot:02x}:00.0",
            "numa": slot // 4,
            "above": f"pci{box:04x}:{slot:02x}/{box:04x}:{slot:02x}:01.0",
        }
        for box in range(devices // _BOX)
        for slot in range(_BOX)
    ]
    path = folder / "many.yaml"
    path.write_text(yaml.safe_dump(shipped), encoding="utf-8")
    return str(path)


async def _socket(folder: Path) -> Path:
    """Wait for the plugin's socket of GPUs."""
    async with asyncio.timeout(_READY_S):
        while not (found := _sockets(folder)):  # noqa: ASYNC110  a child sets no Event
            await asyncio.sleep(0.02)
    return found[0]


def _sockets(folder: Path) -> list[Path]:
    return list(folder.glob(f"*{_RESOURCE}*.sock"))


def _replace(path: Path, text: str) -> None:
    """Write a file whole: whoever reads it sees the old one or the new."""
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _family(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").iterdir():
            found += map(int, (task / "children").read_text(encoding="utf-8").split())
    return found


def _pss_mib(pid: int) -> float:
    """Return the proportional set size: pages that several share are counted in parts (proc(5))."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(":")
        if name == "Pss":
            return int(rest.split()[0]) / 1024
    raise RuntimeError(f"/proc/{pid}/smaps_rollup: has no line Pss")
