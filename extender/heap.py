"""What malloc does with memory that is free again, which a start has by the hundred megabytes.

::

    answer of 20 MB ──► read ──► free ──► kept for the next answer ··· listed ──► given back

By itself glibc gives an answer's memory back as soon as it is free, and the next answer is written
to pages that the kernel has to find and to clear first: a tenth of what reading a list takes, and
much more in a virtual machine that gives free memory back to its host.
"""

import ctypes
from typing import Final

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc, malloc.h
_KEPT_BYTES: Final = 128 << 20  # a few answers: one is read while others are applied
_LONGEST_BYTES: Final = 32 << 20  # as much as glibc takes from its heap at all; answers have 20 MB
_LIBC: Final = ctypes.CDLL(None)


def keep() -> None:
    """Keep what is free for the next answer. Nothing happens but with glibc."""
    if hasattr(_LIBC, "mallopt"):
        _LIBC.mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        _LIBC.mallopt(_MMAP_THRESHOLD, _LONGEST_BYTES)


def give_back() -> None:
    """Give back all that is free, wherever it is in the heap. Nothing happens but with glibc."""
    if hasattr(_LIBC, "malloc_trim"):
        _LIBC.malloc_trim(0)
