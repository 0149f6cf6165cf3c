"""A machine with NVIDIA GPUs for NVML to see: the stub library of `nvmlstub/` and its state.

The library is compiled by gcc once for each run of the tests, and `nvidia-ml-py` loads it in the
child process as it would load NVIDIA's. What the machine has stands in a text file that tests
rewrite while the child runs; its statements are explained in `nvmlstub/state.h`.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from deviceplugin.backends.nvml.backend import NvmlBackend
from deviceplugin.backends.nvml.link import NvmlTimeouts

SOURCES = Path(__file__).parent / "nvmlstub"
# As fast as a machine with two busy cores lets a child answer, and no slower.
BRIEF = NvmlTimeouts(silence_s=5.0, slow_s=20.0, pause_s=0.05, longest_pause_s=0.2, lost_s=0.3)


def build(into: Path, *, old_driver: bool = False) -> Path:
    """Compile the library; return its directory. `old_driver`: later calls are missing from it."""
    if (gcc := shutil.which("gcc")) is None:
        pytest.skip("NO GCC HERE: the NVML backend is NOT tested against a library")
    into.mkdir(parents=True, exist_ok=True)
    flags = ["-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-O1", "-fPIC", "-shared"]
    flags += ["-DOLD_DRIVER"] if old_driver else []
    output = ["-Wl,-soname,libnvidia-ml.so.1", "-o", str(into / "libnvidia-ml.so.1")]
    sources = [str(source) for source in sorted(SOURCES.glob("*.c"))]
    subprocess.run([gcc, *flags, *sources, *output], check=True)
    return into


def pci(index: int) -> str:
    """Return a GPU's PCI address as NVML writes it."""
    return f"00000000:{0x1B + 0x10 * index:02X}:00.0"


def uuid(index: int) -> str:
    """Return a GPU's UUID."""
    return f"GPU-{index:08x}-aaaa-bbbb-cccc-{index:012x}"


def h100(index: int) -> str:
    """Return the statement of an H100."""
    return f"gpu {index} {uuid(index)} {pci(index)} 233010DE 81559 NVIDIA H100 80GB HBM3"


def on_switches(index: int, links: int = 18) -> list[str]:
    """Return the statements of NVLinks to switches."""
    return [f"link {index} {link} 1 2 00000000:{0xA0 + link % 4:02X}:00.0" for link in range(links)]


def between(one: int, other: int, links: Iterable[int]) -> list[str]:
    """Return the statements of NVLinks from one GPU to another, as the one end tells them."""
    return [f"link {one} {link} 1 0 {pci(other)}" for link in links]


class Machine:
    """The stub's machine. `library`: the directory of the compiled stub. `state`: the file."""

    def __init__(self, where: Path, library: Path) -> None:
        self.library = library
        self.root = where / "root"
        self.root.mkdir(parents=True)
        self.state = where / "state"
        self.rewrite(["driver 570.86.15", "cuda 12080"])

    def rewrite(self, statements: Iterable[str]) -> None:
        """Replace everything that is said of the machine."""
        fresh = self.state.with_suffix(".new")
        fresh.write_text("".join(f"{statement}\n" for statement in statements))
        os.replace(fresh, self.state)  # noqa: PTH105 - says that it replaces

    def say(self, *statements: str) -> None:
        """Add statements; a later one on the same thing counts."""
        self.rewrite([*self.state.read_text().splitlines(), *statements])

    def unsay(self, *statements: str) -> None:
        """Take statements back."""
        others = [s for s in self.state.read_text().splitlines() if s not in statements]
        self.rewrite(others)

    def file(self, path: str, text: str = "") -> Path:
        """Lay out a file under the root that the backend is given."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def instances(self) -> list[tuple[int, ...]]:
        """Return what stands: (GPU, GPU instance, profile id, start, size, compute instance)."""
        stored = self.state.with_name("state.mig")
        lines = stored.read_text().splitlines() if stored.exists() else []
        return sorted(tuple(int(word) for word in line.split()) for line in lines)

    def backend(self, patience: NvmlTimeouts = BRIEF, library: Path | None = None) -> NvmlBackend:
        """Return a backend over this machine, to be closed by the caller."""
        return NvmlBackend(
            library=library or self.library,
            root=self.root,
            patience=patience,
            environment={"NVMLSTUB": str(self.state)},
        )
