"""The annotation by which Multus is told a pod's further networks, read and merged.

``k8s.v1.cni.cncf.io/networks`` (multi-net-spec, section 4.1) has two forms that say the same::

    short   team-a/storage@net1, rdma                 comma-separated [namespace/]name[@interface]
    JSON    [{"name":"storage","namespace":"team-a","interface":"net1"}, …]    with more fields

Multus takes for JSON what contains one of ``[{"``. An address can only be asked for in JSON, so
what is short is rewritten, entry by entry and in order: the order gives interfaces without a name
theirs. Fields that are not known here are kept as they are.
"""

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from muster.kube.kinds.jobnetworks import ATTACHMENT_PREFIX, INTERFACE

ANNOTATION: Final = "k8s.v1.cni.cncf.io/networks"
_JSON: Final = frozenset('[{"')
_NAME: Final = r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?"
_SHORT: Final = re.compile(
    rf"(?:(?P<namespace>{_NAME})/)?(?P<name>{_NAME})(?:@(?P<interface>\S+))?"
)

Element = dict[str, object]


class BadNetworks(ValueError):
    """The annotation cannot be read; Multus would not start the pod either."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A pod's attachment to its job's network. ``address``: with its prefix length."""

    name: str
    namespace: str
    address: str

    def element(self) -> Element:
        """Return it as an entry of the JSON form."""
        return {
            "name": self.name,
            "namespace": self.namespace,
            "interface": INTERFACE,
            "ips": [self.address],
        }


class _Ours(msgspec.Struct, frozen=True):
    name: str = ""
    ips: tuple[str, ...] = ()


_ELEMENTS: Final = msgspec.json.Decoder(list[Element])
_ADDRESSES: Final = msgspec.json.Decoder(list[_Ours])


def merged(before: str, mine: Selection) -> str:
    """Return the annotation with ``mine`` at its end, and no other network of a job.

    Raises ``BadNetworks`` where ``before`` cannot be read, or asks for our interface's name.
    """
    kept = [element for element in elements(before) if not _is_of_a_job(element)]
    for element in kept:
        if INTERFACE in (element.get("interface"), element.get("interfaceRequest")):
            raise BadNetworks(
                f"annotation {ANNOTATION}: network {element.get('name')!r} asks for the interface "
                f"{INTERFACE}, which is the job network's: name it otherwise"
            )
    return msgspec.json.encode([*kept, mine.element()]).decode()


def elements(text: str) -> list[Element]:
    """Return the entries of either form. Raises ``BadNetworks``."""
    if not text.strip():
        return []
    if not _JSON & set(text):
        return [_short(item.strip()) for item in text.split(",")]
    try:
        found = _ELEMENTS.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError) as error:
        raise BadNetworks(f"annotation {ANNOTATION}: is no list of networks: {error}") from None
    return found


def address_of(text: str, name: str) -> str | None:
    """Return the address that an annotation asks for in a network of ours, None where it does not.

    Whatever cannot be read asks for none.
    """
    try:
        found = _ADDRESSES.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return None
    return next((each.ips[0] for each in found if each.name == name and each.ips), None)


def vni_of(text: str) -> int | None:
    """Return the VNI of the job's network that an annotation names, None where it names none."""
    for found in re.findall(rf'"{ATTACHMENT_PREFIX}(\d{{1,8}})"', text):
        return int(found)
    return None


def _short(item: str) -> Element:
    found = _SHORT.fullmatch(item)
    if found is None:
        raise BadNetworks(
            f"annotation {ANNOTATION}: {item!r} is no network; write [NAMESPACE/]NAME[@INTERFACE]"
        )
    return {key: value for key, value in found.groupdict().items() if value}


def _is_of_a_job(element: Element) -> bool:
    return str(element.get("name", "")).startswith(ATTACHMENT_PREFIX)
