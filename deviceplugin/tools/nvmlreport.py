"""``muster device-plugin look``: what NVML finds on this machine, and nothing else is touched.

    muster device-plugin look                  a line for each GPU
    muster device-plugin look --json           inventory and readings
    muster device-plugin look --facts          what NVML itself told, to keep as test data

UUIDs name the machine: look through what you give away.
"""

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from deviceplugin.backends.nvml.backend import NvmlBackend
from deviceplugin.errors import BackendError
from deviceplugin.model.inventory import Gpu, Inventory, NvLinks
from deviceplugin.model.signals import GpuReading

_INDENT: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what there is; return the exit code."""
    given = _parser().parse_args(arguments)
    logging.getLogger("deviceplugin").addHandler(logging.NullHandler())  # the error says it all
    try:
        sys.stdout.write(asyncio.run(_look(given)) + "\n")
    except BackendError as error:
        sys.stderr.write(f"muster device-plugin look: {error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="muster device-plugin look", description="Show what NVML finds on this machine."
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="inventory and readings")
    form.add_argument("--facts", action="store_true", help="what NVML itself told")
    parser.add_argument("--library", type=Path, metavar="DIR", help="has libnvidia-ml.so.1")
    return parser


async def _look(given: argparse.Namespace) -> str:
    backend = NvmlBackend(library=given.library)
    try:
        if given.facts:
            return _json(await backend.facts())
        inventory = await backend.inventory()
        readings = await backend.readings()
    finally:
        await backend.close()
    return shown(inventory, readings) if given.json else _lines(inventory, readings)


def shown(inventory: Inventory, readings: Sequence[GpuReading]) -> str:
    """Return inventory and readings as JSON; links as a list, since JSON knows no pairs as keys."""
    links = inventory.links
    found = {
        "inventory": replace(inventory, links=NvLinks()),
        "links": [{"between": pair, "links": n} for pair, n in sorted(links.between.items())],
        "toSwitches": dict(links.to_switches),
        "readings": readings,
    }
    return _json(found)


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=_INDENT).decode()


def _plain(value: object) -> object:
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise NotImplementedError(f"{type(value)} has no form in JSON")


def _lines(inventory: Inventory, readings: Sequence[GpuReading]) -> str:
    by_uuid = {reading.uuid: reading for reading in readings}
    head = f"driver {inventory.driver.version}, CUDA {inventory.driver.cuda}"
    return "\n".join([head, *(_line(gpu, by_uuid.get(gpu.uuid)) for gpu in inventory.gpus)])


def _line(gpu: Gpu, reading: GpuReading | None) -> str:
    warm = reading.temperature if reading else None
    cut = f", MIG {len(gpu.mig.instances)}" if gpu.mig and gpu.mig.enabled else ""
    return (
        f"{gpu.index} {gpu.uuid} {gpu.model} {gpu.memory_mib} MiB {gpu.place.address} "
        f"NUMA {gpu.place.numa}{cut}, {'does not answer' if warm is None else f'{warm} °C'}"
    )


if __name__ == "__main__":
    sys.exit(main())
