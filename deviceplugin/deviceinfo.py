"""Device-info files: what Multus passes on to a CNI plugin about a PCI function.

::

    <folder>/<prefix>-<name>-<PCI address>-device.json
    {"type": "pci", "version": "1.1.0", "pci": {"pci-address": "0000:3b:00.2", "rdma-device": …}}

With ``vdpaType`` the type is "vdpa", with the name, the kind and the file of the vDPA device.

Source: Kubernetes Network Plumbing Working Group, "Device Information Specification" 1.1.0, and
network-attachment-definition-client pkg/utils/net-attach-def.go (``SaveDeviceInfoForDP``).
"""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from deviceplugin.model.inventory import Inventory, Nic
from deviceplugin.resources.advertisements import Advertisement

log = logging.getLogger(__name__)

VERSION: Final = "1.1.0"


def files(inventory: Inventory, advertisement: Advertisement) -> dict[str, bytes]:
    """Return the files by name, one for each PCI function that is advertised."""
    nics = {nic.name: nic for nic in inventory.nics}
    found: dict[str, bytes] = {}
    for each in advertisement.resources:
        for device in each.devices if each.functions is not None else ():
            name = f"{each.resource}-{device.id}-device.json".replace("/", "-")
            vdpa = each.functions.vdpa if each.functions is not None else frozenset[str]()
            found[name] = msgspec.json.encode(_about(device.id, nics.get(device.device), vdpa))
    return found


def _about(address: str, nic: Nic | None, vdpa: frozenset[str]) -> dict[str, object]:
    """Return one file's content; ``vdpa``: how a function is given by its vDPA device."""
    about = {"pci-address": address}
    if nic is not None and nic.virtual_of:
        about["pf-pci-address"] = nic.virtual_of
    if nic is not None and nic.vdpa is not None and nic.vdpa.kind in vdpa:
        about |= {"parent-device": nic.vdpa.name, "driver": nic.vdpa.kind}
        about |= {"path": nic.vdpa.file} if nic.vdpa.file else {}
        return {"type": "vdpa", "version": VERSION, "vdpa": about}
    if nic is not None:
        about["rdma-device"] = nic.name
    return {"type": "pci", "version": VERSION, "pci": about}


class DeviceInfoFiles:
    """Keeps the files of a folder as they should be; others' files stay."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: Mapping[str, bytes] = {}
        self._problem = ""

    def write(self, wanted: Mapping[str, bytes]) -> None:
        """Write the files that have changed and remove those that are no longer wanted."""
        if wanted == self._written:
            return
        try:
            self._put(wanted)
        except OSError as error:
            self._tell(f"{self._folder}: {error.strerror or error}")
        else:
            self._written, self._problem = dict(wanted), ""

    def _put(self, wanted: Mapping[str, bytes]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for name, data in wanted.items():
            if self._written.get(name) != data:
                hidden = self._folder / f".{name}.new"
                hidden.write_bytes(data)
                hidden.replace(self._folder / name)
        self._remove(self._written.keys() - wanted.keys())

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            (self._folder / name).unlink(missing_ok=True)

    def _tell(self, problem: str) -> None:
        if problem != self._problem:
            log.error(
                "Multus gets no device-info files; mount the folder, or set "
                "allocation.deviceInfoFolder",
                extra={"problem": problem},
            )
        self._problem = problem
