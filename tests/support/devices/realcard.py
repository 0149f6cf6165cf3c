"""An NVIDIA GPU that this machine really has, for tests that are skipped where there is none.

What a program on the GPU does to it is done by `cudaprogram`; nothing here changes a setting.
"""

import subprocess
import sys
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import pynvml
import pytest

PROGRAM = Path(__file__).with_name("cudaprogram.py")
_END_S = 60.0  # a context takes a second or two, more where persistence mode is off


@cache
def why_none() -> str:
    """Return why no GPU can be asked here, "" where one can."""
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return str(error)
    return "" if count else "NVML counts no GPU"


def skip_without_gpu() -> None:
    """Skip the test, loudly, where there is no GPU."""
    if why := why_none():
        pytest.skip(f"NO NVIDIA GPU HERE: {why}; the plugin is NOT tested on a real one")


def smi() -> ET.Element:
    """Return what nvidia-smi says of everything."""
    said = subprocess.run(["nvidia-smi", "-q", "-x"], check=True, capture_output=True)
    return ET.fromstring(said.stdout)  # noqa: S314 - the driver wrote it


def command(*words: str) -> list[str]:
    """Return the command of the program on the GPU."""
    return [sys.executable, str(PROGRAM), *words]


def fault() -> None:
    """Have a program write where it has no memory: the driver ends it and reports an XID."""
    ended = subprocess.run(command("fault"), check=True, capture_output=True, timeout=_END_S)
    assert ended.stdout.strip() == b"700", ended  # CUDA_ERROR_ILLEGAL_ADDRESS


def use() -> None:
    """Have a program compute on the GPU: with the first one the driver makes its device files."""
    subprocess.run(command("compute"), check=True, capture_output=True, timeout=_END_S)
