"""How much memory the child takes."""

from pathlib import Path
from typing import Final

from support.devices.nvmlmachine import Machine

from deviceplugin.backends.nvml.backend import NvmlBackend

# Of the 80 MB that plugin and child may take together. What the child takes beyond the
# interpreter's 7 MB is pynvml, msgspec and ctypes; an import of asyncio would be another 8 MB.
MOST_KIB: Final = 25 * 1024


def pss_kib(pid: int) -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))


async def test_the_child_stays_small(machine: Machine, nvml: NvmlBackend) -> None:
    assert machine.library
    for _ in range(20):
        await nvml.inventory()
        await nvml.readings()
    assert nvml._link is not None
    assert pss_kib(nvml._link.pid) <= MOST_KIB


async def test_the_child_imports_nothing_of_the_plugin_but_its_own_modules(
    nvml: NvmlBackend,
) -> None:
    """grpc, numpy and kube.* would each cost more than the child itself."""
    await nvml.inventory()
    assert nvml._link is not None
    mapped = Path(f"/proc/{nvml._link.pid}/maps").read_text()  # noqa: ASYNC240 - a test
    assert "_asyncio" not in mapped
    assert "grpc" not in mapped
    assert "numpy" not in mapped
