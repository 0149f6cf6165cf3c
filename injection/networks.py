"""The Multus annotation ``k8s.v1.cni.cncf.io/networks``, in both of its forms.

Source: Network Attachment Definition specification 1.2 (k8snetworkplumbingwg), section 4.1: a
comma-separated list of ``[namespace/]name[@interface]``, or a JSON list of objects. Each entry
is one interface, so the same name twice is two of them. What is there stays in its form and
order; what is added comes after it. An annotation that is neither form is left alone.
"""

from typing import Final

import msgspec

ANNOTATION: Final = "k8s.v1.cni.cncf.io/networks"


class _Selected(msgspec.Struct, rename="kebab", omit_defaults=True):
    name: str
    namespace: str = ""


_OBJECTS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_NAMED: Final = msgspec.json.Decoder(list[_Selected])


def merged(present: str, wanted: tuple[str, ...]) -> str | None:
    """Return the annotation with ``wanted`` in it, ``None`` where nothing is missing.

    ``wanted``: ``name`` or ``namespace/name``, once per interface. A name that the pod asks for
    as often as wanted, or oftener, is not added again. Raises ``ValueError`` for text that is in
    neither form.
    """
    text = present.strip()
    if text.startswith("["):
        return _json(text, wanted)
    there = [item.strip() for item in text.split(",")] if text else []
    if not all(there):
        raise ValueError(f"has an empty entry: {present!r}")
    missing = _missing([item.partition("@")[0] for item in there], wanted)
    return ",".join([text, *missing] if text else missing) if missing else None


def _json(text: str, wanted: tuple[str, ...]) -> str | None:
    try:
        named, objects = _NAMED.decode(text), _OBJECTS.decode(text)
    except msgspec.MsgspecError as error:
        raise ValueError(f"is no JSON list of networks: {error}") from error
    there = [f"{n.namespace}/{n.name}" if n.namespace else n.name for n in named]
    missing = [_selected(name) for name in _missing(there, wanted)]
    return msgspec.json.encode([*objects, *missing]).decode() if missing else None


def _missing(there: list[str], wanted: tuple[str, ...]) -> list[str]:
    """Return what of ``wanted`` is not there yet, counted entry by entry."""
    left = list(there)
    missing = []
    for name in wanted:
        if name in left:
            left.remove(name)
        else:
            missing.append(name)
    return missing


def _selected(name: str) -> _Selected:
    namespace, _, short = name.rpartition("/")
    return _Selected(short, namespace)
