"""The annotation that names a pod's further networks for Multus, read and merged.

``k8s.v1.cni.cncf.io/networks`` (multi-net-spec, section 4.1) has two forms that say the same::

    short   team-a/storage@net1, rdma                 comma-separated [namespace/]name[@interface]
    JSON    [{"name":"storage","namespace":"team-a","interface":"net1"}, …]    with more fields

The grammar is the one that Multus reads (multus-cni, ``parsePodNetworkAnnotation``): JSON is what
contains one of ``[{"``, everything else is short, and one entry that cannot be read fails the pod.
Each entry is one interface, so the same name twice makes two interfaces. Interfaces without a name
are named in the order of the entries. Unknown fields are written back as they were read.

Two callers add to it. A job's network needs an address, which only JSON can ask for, so ``merged``
rewrites the short form to JSON. Injection only adds names, so ``completed`` leaves the text in its
form.
"""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

import msgspec

from muster.kube.kinds.jobnetworks import ATTACHMENT_PREFIX, INTERFACE

ANNOTATION: Final = "k8s.v1.cni.cncf.io/networks"
#: Matches what only the JSON form contains; also a regular expression of CEL.
JSON_PATTERN: Final = r'[\[{"]'
_JSON: Final = re.compile(JSON_PATTERN)
_NAME: Final = r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?"
#: Matches one entry of the short form; also a regular expression of CEL.
SHORT_PATTERN: Final = rf"(?:(?P<namespace>{_NAME})/)?(?P<name>{_NAME})(?:@(?P<interface>\S+))?"
_SHORT: Final = re.compile(SHORT_PATTERN, re.ASCII)

Element = dict[str, object]


class BadNetworks(ValueError):
    """The annotation cannot be read; Multus would not start the pod either."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A pod's attachment to its job's network."""

    #: Name and namespace of the NetworkAttachmentDefinition.
    name: str
    namespace: str
    #: The interface's address with its prefix length.
    address: str

    def element(self) -> Element:
        """Return it as an entry of the JSON form."""
        return {
            "name": self.name,
            "namespace": self.namespace,
            "interface": INTERFACE,
            "ips": [self.address],
        }


class _Named(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    namespace: str | None = ""


class _Ours(msgspec.Struct, frozen=True):
    name: str = ""
    ips: tuple[str, ...] = ()


_ELEMENTS: Final = msgspec.json.Decoder(list[Element])
_NAMED: Final = msgspec.json.Decoder(list[_Named])
_ADDRESSES: Final = msgspec.json.Decoder(list[_Ours])


def merged(before: str, mine: Selection) -> str:
    """Return the annotation with ``mine`` at its end, and no other network of a job.

    Raises ``BadNetworks`` where ``before`` cannot be read, or asks for our interface's name.
    """
    others = [element for element in elements(before) if not _is_of_a_job(element)]
    for element in others:
        if INTERFACE in (element.get("interface"), element.get("interfaceRequest")):
            raise BadNetworks(
                f"annotation {ANNOTATION}: network {element.get('name')!r} asks for the interface "
                f"{INTERFACE}, which is the job network's: name it otherwise"
            )
    return msgspec.json.encode([*others, mine.element()]).decode()


def completed(present: str, wanted: tuple[str, ...], namespace: str = "") -> str | None:
    """Return the annotation with ``wanted`` at its end, ``None`` where nothing is missing.

    ``wanted``: ``name`` or ``namespace/name``, once per interface. A name that the pod asks for
    at least as often as wanted is not added again; a name alone means ``namespace``, the
    pod's own. Present entries stay in their form and order. Raises ``BadNetworks``.
    """
    text = present.strip()
    there = [_Named(str(e["name"]), str(e.get("namespace") or "")) for e in elements(text)]
    missing = _missing(there, wanted, namespace)
    if not missing:
        return None
    if not _is_json(text):
        return ",".join([text, *missing] if text else missing)
    added = msgspec.json.encode([_named(name) for name in missing]).decode()
    return f"{text[:-1].rstrip()},{added[1:]}" if there else added


def elements(text: str) -> list[Element]:
    """Return the entries of either form; each has a name. Raises ``BadNetworks``."""
    if not text.strip():
        return []
    if not _is_json(text):
        return [_short(item.strip()) for item in text.split(",")]
    try:
        found = _ELEMENTS.decode(text)
        _NAMED.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError) as error:
        raise BadNetworks(f"annotation {ANNOTATION}: is no list of networks: {error}") from None
    return found


def address_of(text: str, name: str) -> str | None:
    """Return the address that an annotation asks for in a network of ours, None for none.

    An annotation that cannot be read asks for none.
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


def _is_json(text: str) -> bool:
    return _JSON.search(text) is not None


def _missing(there: list[_Named], wanted: tuple[str, ...], namespace: str) -> list[str]:
    """Return the entries of ``wanted`` that are missing; two equal ones count as two."""
    left = Counter((each.namespace or namespace, each.name) for each in there)
    missing = []
    for name in wanted:
        each = _named(name)
        full = (each.namespace or namespace, each.name)
        if left[full]:
            left[full] -= 1
        else:
            missing.append(name)
    return missing


def _named(name: str) -> _Named:
    namespace, _, short = name.rpartition("/")
    return _Named(short, namespace)


def _short(item: str) -> Element:
    found = _SHORT.fullmatch(item)
    if found is None:
        raise BadNetworks(
            f"annotation {ANNOTATION}: {item!r} is no network; write [NAMESPACE/]NAME[@INTERFACE]"
        )
    return {key: value for key, value in found.groupdict().items() if value}


def _is_of_a_job(element: Element) -> bool:
    return str(element.get("name", "")).startswith(ATTACHMENT_PREFIX)
