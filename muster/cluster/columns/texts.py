"""Many texts as columns of their bytes, and an index that finds many of them at once.

::

    "host-12"  ──►  7 │ h o s t - 1 2 0 │        size, then words of eight bytes, zeros behind
                              │
                              ▼ hash
                           place ──► the same words there? ──yes──► number
                              └─────── no: the next place; free: it is not known

A dictionary of 130,000 names is larger than the processor's cache. Looking up one name after the
other waits for memory three or four times for each. Here one numpy step does one memory access for
all names, and the processor waits for many of them at a time.
"""

from collections.abc import Iterable, Sequence
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

LONGEST: Final = 256  # bytes of a text; names of nodes have up to 253
ABSENT: Final = -1
_WORD: Final = 8
_FACTOR: Final = np.uint64(0x9E37_79B9_7F4A_7C15)  # 2^64 over the golden ratio (TAOCP 3, 6.4)
_HALF: Final = np.uint64(32)
_FREE: Final = ABSENT
_BREAK: Final = "\0"  # occurs in no name

Words = NDArray[np.uint64]
Numbers = NDArray[np.intp]


class Texts(Sequence[str]):
    """Texts of a page, decoded when they are read.

    ``words``: uint64[1 + k, n], the size of each in bytes, then its UTF-8 bytes, eight to a word,
    padded with zeros. Bytes that are no UTF-8 read as U+FFFD; such a text is in no index.
    """

    def __init__(self, words: Words) -> None:
        self.words = words

    @property
    def sizes(self) -> NDArray[np.uint64]:
        """Return the size of each, in bytes."""
        sizes: NDArray[np.uint64] = self.words[0]
        return sizes

    def at(self, places: Numbers) -> "Texts":
        """Return the texts at some places."""
        return Texts(self.words[:, places])

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, place: int, /) -> str: ...
    @overload
    def __getitem__(self, place: slice, /) -> list[str]: ...
    def __getitem__(self, place: int | slice, /) -> str | list[str]:
        """Return a text, or several."""
        if isinstance(place, slice):
            return _read(self.words[:, place])
        size, *words = self.words[:, place].tolist()
        raw = b"".join([word.to_bytes(_WORD, "little") for word in words])
        return raw[:size].decode(errors="replace")


class TextIndex:
    """Finds the numbers of texts. It does not change."""

    def __init__(self, texts: Iterable[str | None]) -> None:
        """``texts``: by number, all different, ``None`` where a number has none.

        Empty texts, texts longer than ``LONGEST``, and invalid UTF-8 are left out.
        """
        raw = _all_encoded([text or "" for text in texts])
        numbers = [number for number, one in enumerate(raw) if one]
        self._words = words_of([raw[number] for number in numbers])
        self._numbers = np.array(numbers, dtype=np.int32)
        self._mask = (1 << (2 * len(numbers)).bit_length()) - 1
        self._places = np.full(self._mask + 1, _FREE, dtype=np.int32)
        self._enter()

    def find(self, texts: Texts) -> Numbers:
        """Return int[n]: the numbers of texts, ``ABSENT`` for unknown ones."""
        found = np.full(len(texts), ABSENT, dtype=np.intp)
        if not len(self._numbers):
            return found
        words, looked = texts.words, np.arange(len(texts))
        at = _hashes(words) & self._mask
        while len(looked):
            rows = self._places[at]
            there = rows != _FREE
            same = there & self._are_same(rows, words[:, looked])
            found[looked[same]] = self._numbers[rows[same]]
            left = there & ~same
            looked, at = looked[left], at[left] + 1 & self._mask
        return found

    def _are_same(self, rows: NDArray[np.int32], words: Words) -> NDArray[np.bool_]:
        """Return bool[n]: whether each text has the words of its row, the size included."""
        same: NDArray[np.bool_] = self._words[0][rows] == words[0]
        for known, asked in zip(self._words[1:], words[1:], strict=False):
            same &= known[rows] == asked
        return same

    def _enter(self) -> None:
        rows = np.arange(len(self._numbers), dtype=np.int32)
        at = _hashes(self._words) & self._mask
        while len(rows):
            free = self._places[at] == _FREE
            self._places[at[free]] = rows[free]  # of several texts for one place, one gets it
            left = self._places[at] != rows
            at, rows = at[left] + 1 & self._mask, rows[left]


def some_of(texts: Sequence[str], places: Numbers) -> Sequence[str]:
    """Return texts of some places."""
    if isinstance(texts, Texts):
        return texts.at(places)
    return [texts[place] for place in places.tolist()]


def are_empty(texts: Sequence[str]) -> NDArray[np.bool_]:
    """Return which texts are empty."""
    if isinstance(texts, Texts):
        empty: NDArray[np.bool_] = texts.sizes == 0
        return empty
    return np.array([text == "" for text in texts], dtype=np.bool_)


def words_of(raw: Sequence[bytes]) -> Words:
    """Return the words of texts in UTF-8; see ``Texts``."""
    sizes = np.fromiter(map(len, raw), dtype=np.uint64, count=len(raw))
    width = -(-int(sizes.max(initial=1)) // _WORD)
    rows = np.array(raw, dtype=f"S{_WORD * width}").view(np.uint64)
    return laid_out(sizes, rows.reshape(len(raw), width))


def laid_out(sizes: NDArray[np.generic], rows: Words) -> Words:
    """Return the words of texts. ``rows``: uint64[n, k], the bytes of each."""
    words = np.empty((1 + rows.shape[1], len(sizes)), dtype=np.uint64)
    words[0], words[1:] = sizes, rows.T
    return words


def _all_encoded(texts: list[str]) -> list[bytes]:
    """Return texts in UTF-8; encodes them all at once where they can be split again."""
    try:
        raw = _BREAK.join(texts).encode().split(_BREAK.encode())
    except UnicodeEncodeError:
        raw = []
    if len(raw) == len(texts) and len(max(raw, key=len, default=b"")) <= LONGEST:
        return raw
    return list(map(_encoded, texts))


def _encoded(text: str) -> bytes:
    """Return a text in UTF-8, b"" for one that no index contains."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return b""
    return raw if len(raw) <= LONGEST else b""


def _read(words: Words) -> list[str]:
    sizes, width = words[0].tolist(), _WORD * (len(words) - 1)
    whole = words[1:].T.tobytes()
    begins = range(0, width * len(sizes), width)
    return [
        whole[begin : begin + size].decode(errors="replace")
        for begin, size in zip(begins, sizes, strict=True)
    ]


def _hashes(words: Words) -> Numbers:
    """Return a hash of each text, which does not depend on the number of zeros behind it."""
    mixed = np.zeros(words.shape[1], dtype=np.uint64)
    factors = _FACTOR * np.arange(1, 2 * len(words), 2, dtype=np.uint64)
    for column, factor in zip(words, factors, strict=True):
        mixed += column * factor
    # The low bits of a product depend on the low bits of the factors only; the highest are best.
    found: Numbers = ((mixed ^ mixed >> _HALF) * _FACTOR >> _HALF).astype(np.intp)
    return found
