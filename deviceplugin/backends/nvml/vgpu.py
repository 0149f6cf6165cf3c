"""The hypervisor's driver, as a vGPU's PCI configuration space reports it. Pure.

::

    0x34 ─► capability ─► … ─► vendor specific: 09 next length 'V' 'F' ─► records: id length data
                                                                            0: version, branch

Source: NVIDIA/k8s-device-plugin internal/vgpu (pciutil.go, vgpu.go), and PCI Local Bus 3.0, 6.7.
"""

from typing import Final

from deviceplugin.model.inventory import VgpuHost

_WHOLE: Final = 256  # bytes; without privileges sysfs shows 64
_STATUS, _HAS_LIST, _FIRST = 0x06, 0x10, 0x34
_VENDOR_SPECIFIC: Final = 0x09
_SIGNATURE: Final = b"VF"
_RECORDS: Final = 5  # where they begin in the capability
_HOST: Final = 0  # id of the record about the hypervisor's driver
_TEXT: Final = 10  # bytes of its version, and of its branch


def host_of(config: bytes) -> VgpuHost | None:
    """Return what a function's configuration space says of its host; None where it is no vGPU.

    Version and branch are empty where the record about them is missing or cut short.
    """
    found = _vendor_specific(config)
    if found[3:_RECORDS] != _SIGNATURE:
        return None
    place = _RECORDS
    while place + 1 < len(found) and found[place] != _HOST:
        place += max(found[place + 1], 1)
    text = found[place + 2 : place + 2 + 2 * _TEXT]
    if len(text) < 2 * _TEXT:
        return VgpuHost()
    return VgpuHost(_word(text[:_TEXT]), _word(text[_TEXT:]))


def _vendor_specific(config: bytes) -> bytes:
    """Return the vendor-specific capability; empty where there is none."""
    if len(config) < _WHOLE or not config[_STATUS] & _HAS_LIST:
        return b""
    place, seen = config[_FIRST], set[int]()
    while place and place not in seen and place + 2 < _WHOLE:
        seen.add(place)
        if config[place] == _VENDOR_SPECIFIC:
            return config[place : min(place + config[place + 2], _WHOLE)]
        place = config[place + 1]
    return b""


def _word(text: bytes) -> str:
    return text.strip(b"\0").decode("ascii", "replace")
