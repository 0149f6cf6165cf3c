"""Text as a label's value (apimachinery validation: IsValidLabelValue)."""

import re
from hashlib import blake2b
from typing import Final

MOST_CHARACTERS: Final = 63
_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9_. -]", re.ASCII)
_DIGEST_BYTES: Final = 4


def sanitised(text: str) -> str:
    """Return ``text`` as GFD writes product names: without other characters, blanks as "-".

    The rule is in k8s-device-plugin internal/lm/resource.go. Longer text is cut.
    """
    words = _FORBIDDEN.sub("", text).split()
    return "-".join(words)[:MOST_CHARACTERS].strip("-_.")


def digest(text: str) -> str:
    """Return ``text`` where it is a valid label value, else its beginning and a digest of it."""
    value = sanitised(text)
    if value == text:
        return value
    mark = blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{value[: MOST_CHARACTERS - len(mark) - 1]}-{mark}".lstrip("-_.")
