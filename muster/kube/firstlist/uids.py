"""UIDs in text → words: eight digits in a step, for all pods of a page.

::

    text    01234567-89ab-cdef-0123-456789abcdef     in words of eight bytes, wherever they lie
            └── 0 ─┘ └1─┘ └1─┘ └2─┘ └2─┘└── 3 ─┘     eight digits each, without the dashes
    digit   '7' = 0x37 ──► 7      'c' = 0x63 ──► 3 + 9, since bit 6 is set in letters alone
    pair    7 c ──► 0x7c          four bytes of eight digits

A table look-up for each digit takes five times as long.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.kube.firstlist.fieldtable import Flags

UID_TEXT: Final = 36  # characters
UID_ROOM: Final = 40  # bytes of the words that they lie in

Words = NDArray[np.uint64]


def _everywhere(byte: int) -> np.uint64:
    return np.uint64(int.from_bytes(bytes([byte]) * 8, "little"))


_LOW, _HIGH = _everywhere(0x0F), _everywhere(0xF0)
_ONE, _ZERO, _NINE = _everywhere(1), _everywhere(ord("0")), np.uint64(9)
_BELOW_TEN: Final = _everywhere(0x80 - 10)  # what brings 10 and more to bit 7
_TO_LETTER: Final = np.uint64(ord("a") - 10 - ord("0"))
_PAIRS, _FOURS, _EIGHT = (
    np.uint64(0x00FF_00FF_00FF_00FF),
    np.uint64(0x0000_FFFF_0000_FFFF),
    np.uint64(0x0000_0000_FFFF_FFFF),
)
_DASHES: Final = np.array(
    [0x0000_FF00_0000_00FF, 0x0000_2D00_0000_002D, 0xFF00_0000_00FF_0000, 0x2D00_0000_002D_0000],
    dtype=np.uint64,
)
"""Bits where dashes stand, and the dashes: of the second word, and of the third."""


def read_uids(chars: NDArray[np.uint8]) -> tuple[Words, Flags]:
    """Return uint64[n, 2], the words of UIDs (``columns.uids``), and which are not canonical.

    ``chars``: uint8[n, UID_ROOM], their texts and anything behind them.
    """
    text = np.ascontiguousarray(chars.view(np.uint64).T)
    there, dashes, there_too, dashes_too = _DASHES
    odd = (text[1] & there != dashes) | (text[2] & there_too != dashes_too)
    packed, wrong = _packed(_digits(text))
    words = np.empty((len(chars), 2), dtype=np.uint64)
    words[:, 0] = packed[0] | packed[1] << np.uint64(32)
    words[:, 1] = packed[2] | packed[3] << np.uint64(32)
    return words, odd | wrong.any(axis=0)


def _digits(text: Words) -> Words:
    """Return uint64[4, n]: the digits without the dashes. ``text``: uint64[5, n]."""
    first, second, third, fourth, fifth = text
    return np.stack(
        (
            first,
            second >> np.uint64(8) & _EIGHT
            | second >> np.uint64(48) << np.uint64(32)
            | third << np.uint64(48),
            third >> np.uint64(24) & _EIGHT | fourth << np.uint64(32),
            fourth >> np.uint64(32) | fifth << np.uint64(32),
        )
    )


def _packed(digits: Words) -> tuple[Words, Flags]:
    """Return the four bytes of eight digits each, and which of them are no digits."""
    value = (digits & _LOW) + (digits >> np.uint64(6) & _ONE) * _NINE
    letter = value + _BELOW_TEN >> np.uint64(7) & _ONE
    written = value + _ZERO + letter * _TO_LETTER
    wrong: Flags = (written != digits) | (value & _HIGH != 0)
    pairs = (value << np.uint64(4) | value >> np.uint64(8)) & _PAIRS
    fours = (pairs | pairs >> np.uint64(8)) & _FOURS
    return (fours | fours >> np.uint64(16)) & _EIGHT, wrong
