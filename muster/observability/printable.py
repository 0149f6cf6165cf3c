"""Text of others on a terminal: what a terminal would obey is shown instead.

Names, messages and annotations are written by users. An escape sequence among them could colour,
hide or retype what an administrator reads, and a bidirectional mark could turn it round.
"""

from __future__ import annotations

import json
import re
from typing import Final

_NOT_ASCII_TEXT: Final = re.compile(r"[^\n -~]")


def printable(text: str) -> str:
    """Return ``text`` with all that is not printable escaped as in JSON, but for line ends.

    A JSON text stays one, with the same meaning.
    """
    return _NOT_ASCII_TEXT.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    return character if character.isprintable() else json.dumps(character)[1:-1]
