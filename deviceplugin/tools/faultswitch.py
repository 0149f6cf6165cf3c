"""``python -m deviceplugin.tools.faultswitch``: switch faults of a simulated machine on and off.

It edits the control file that ``deviceplugin.backends.simulated.faults`` describes, whole and
atomically, so a running plugin never reads half a file::

    muster device-plugin fault FILE xid 79 --gpu 0
    muster device-plugin fault FILE set temperature=93 eccUncorrected=1 --gpu 0
    muster device-plugin fault FILE set lost='fallen off the bus' --gpu 3
    muster device-plugin fault FILE set down=[1] --nic mlx5_4
    muster device-plugin fault FILE set hangs='driver is stuck' --backend
    muster device-plugin fault FILE well --gpu 0
    muster device-plugin fault FILE well
"""

import argparse
import os
import sys
from pathlib import Path
from typing import TypeVar

import msgspec

from deviceplugin.backends.simulated.faults import BackendFault, Faults, GpuFault, NicFault, XidAt
from muster.observability import configfile
from muster.observability.configfile import ConfigError

T = TypeVar("T", GpuFault, NicFault, BackendFault)


def main(arguments: list[str] | None = None) -> int:
    """Edit the file and return the exit code."""
    given = _parser().parse_args(arguments)
    try:
        before = read(given.file)
        write(given.file, _edited(before, given))
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"muster device-plugin fault: {error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="muster device-plugin fault", description="Switch faults of a simulated machine."
    )
    parser.add_argument("file", type=Path, help="the control file that the plugin was given")
    verbs = parser.add_subparsers(dest="verb", required=True)
    xid = verbs.add_parser("xid", help="report an XID once more")
    xid.add_argument("code", type=int)
    xid.add_argument("--gpu", required=True, help="index, UUID or all")
    xid.add_argument("--gpu-instance", type=int, help="of one MIG instance only")
    setting = verbs.add_parser("set", help="set fields (FIELD=VALUE, values in YAML)")
    setting.add_argument("fields", nargs="+")
    _add_whose(setting, required=True)
    _add_whose(verbs.add_parser("well", help="take faults away; all of them when none is named"))
    return parser


def _add_whose(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    whose = parser.add_mutually_exclusive_group(required=required)
    whose.add_argument("--gpu", help="index, UUID or all")
    whose.add_argument("--nic", help="verbs name or all")
    whose.add_argument("--backend", action="store_true", help="the backend itself")


# --- edits --------------------------------------------------------------------------------


def _edited(faults: Faults, given: argparse.Namespace) -> Faults:
    if given.verb == "xid":
        return with_xid(faults, given.gpu, given.code, given.gpu_instance)
    if given.verb == "set":
        fields = dict(_field(text) for text in given.fields)
        return with_fields(faults, fields, gpu=given.gpu, nic=given.nic)
    return without(faults, gpu=given.gpu, nic=given.nic, backend=given.backend)


def _field(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"{text!r}: write FIELD=VALUE (temperature=93)")
    try:
        return name, msgspec.yaml.decode(value)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{name}: {value!r} is not YAML: {error}") from error


def with_xid(faults: Faults, gpu: str, code: int, instance: int | None = None) -> Faults:
    """Return the faults with one XID more."""
    key = _key(gpu)
    old = faults.gpus.get(key, GpuFault())
    xid = code if instance is None else XidAt(code, instance)
    new = msgspec.structs.replace(old, xids=(*old.xids, xid))
    return msgspec.structs.replace(faults, gpus={**faults.gpus, key: new})


def with_fields(
    faults: Faults, fields: dict[str, object], *, gpu: str | None = None, nic: str | None = None
) -> Faults:
    """Return the faults with fields of a GPU, a NIC or else the backend set."""
    if gpu is not None:
        key = _key(gpu)
        changed = _changed(faults.gpus.get(key, GpuFault()), fields)
        return msgspec.structs.replace(faults, gpus={**faults.gpus, key: changed})
    if nic is not None:
        port = _changed(faults.nics.get(nic, NicFault()), fields)
        return msgspec.structs.replace(faults, nics={**faults.nics, nic: port})
    return msgspec.structs.replace(faults, backend=_changed(faults.backend, fields))


def _changed(old: T, fields: dict[str, object]) -> T:
    data = msgspec.yaml.encode({**msgspec.to_builtins(old), **fields})
    return configfile.parse(data, type(old), lambda _: (), source="fault")


def without(
    faults: Faults, *, gpu: str | None = None, nic: str | None = None, backend: bool = False
) -> Faults:
    """Return the faults without those of one thing; without any when none is named."""
    if gpu is not None:
        left = {key: fault for key, fault in faults.gpus.items() if str(key) != gpu}
        return msgspec.structs.replace(faults, gpus=left)
    if nic is not None:
        ports = {name: fault for name, fault in faults.nics.items() if name != nic}
        return msgspec.structs.replace(faults, nics=ports)
    return msgspec.structs.replace(faults, backend=BackendFault()) if backend else Faults()


def _key(gpu: str) -> int | str:
    return int(gpu) if gpu.isdecimal() else gpu


# --- the file -----------------------------------------------------------------------------


def read(path: Path) -> Faults:
    """Return what the file says; no faults where there is none. Raises ``ConfigError``."""
    if not path.exists() or not path.read_bytes().strip():
        return Faults()
    return configfile.load(path, Faults, lambda _: ())


def write(path: Path, faults: Faults) -> None:
    """Put a whole new file in the place of the old one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(msgspec.yaml.encode(faults))
    beside.replace(path)


if __name__ == "__main__":
    sys.exit(main())
