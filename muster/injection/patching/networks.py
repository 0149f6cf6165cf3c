"""The Multus annotation ``k8s.v1.cni.cncf.io/networks``, in both of its forms.

Source: Network Attachment Definition specification 1.2 (k8snetworkplumbingwg), section 4.1: a
comma-separated list of ``[namespace/]name[@interface]``, or a JSON list of objects. Each entry
is one interface, so the same name twice is two of them. What is there stays in its form and
order; what is added comes after it. An annotation that is neither form is left alone.
"""

from collections import Counter
from typing import Final

import msgspec

ANNOTATION: Final = "k8s.v1.cni.cncf.io/networks"


class _Selected(msgspec.Struct, rename="kebab", omit_defaults=True):
    name: str
    namespace: str = ""


_NAMED: Final = msgspec.json.Decoder(list[_Selected])


def merged(present: str, wanted: tuple[str, ...], namespace: str = "") -> str | None:
    """Return the annotation with ``wanted`` in it, ``None`` where nothing is missing.

    ``wanted``: ``name`` or ``namespace/name``, once per interface. A name that the pod asks for
    as often as wanted, or oftener, is not added again; a name alone means ``namespace``, the
    pod's own. Raises ``ValueError`` for text that is in neither form.
    """
    text = present.strip()
    if text.startswith("["):
        return _json(text, wanted, namespace)
    there = [item.strip() for item in text.split(",")] if text else []
    if not all(there):
        raise ValueError(f"has an empty entry: {present!r}")
    missing = _missing([item.partition("@")[0] for item in there], wanted, namespace)
    return ",".join([text, *missing] if text else missing) if missing else None


def _json(text: str, wanted: tuple[str, ...], namespace: str) -> str | None:
    """Return the list with what is missing at its end; the text before stays as it is."""
    try:
        named = _NAMED.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"is no JSON list of networks: {error}") from error
    there = [f"{n.namespace}/{n.name}" if n.namespace else n.name for n in named]
    missing = [_selected(name) for name in _missing(there, wanted, namespace)]
    if not missing:
        return None
    added = msgspec.json.encode(missing).decode()
    return f"{text[:-1].rstrip()},{added[1:]}" if named else added


def _missing(there: list[str], wanted: tuple[str, ...], namespace: str) -> list[str]:
    """Return what of ``wanted`` is not there yet, counted entry by entry."""
    left = Counter(_qualified(name, namespace) for name in there)
    missing = []
    for name in wanted:
        full = _qualified(name, namespace)
        if left[full]:
            left[full] -= 1
        else:
            missing.append(name)
    return missing


def _qualified(name: str, namespace: str) -> str:
    return name if "/" in name or not namespace else f"{namespace}/{name}"


def _selected(name: str) -> _Selected:
    namespace, _, short = name.rpartition("/")
    return _Selected(short, namespace)
