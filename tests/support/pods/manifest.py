"""Objects written as YAML in a test, decoded as the watch decodes them."""

from typing import TypeVar

import msgspec

T = TypeVar("T")


def read(text: str, kind: type[T], *swaps: tuple[str, str]) -> T:
    """Return ``text`` as a ``kind``; each swap (old, new) must hit something."""
    for old, new in swaps:
        assert old in text, f"{old!r} is not in the manifest"
        text = text.replace(old, new)
    return msgspec.yaml.decode(text.encode(), type=kind)
