"""A line on standard error while something takes longer than a second, if that is a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_AFTER_S: Final = 1.0
_ERASE: Final = "\r\x1b[K"


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Show ``what`` after a second; it is gone before anything else is printed."""
    if not sys.stderr.isatty():
        yield
        return
    shown = threading.Event()

    def show() -> None:
        shown.set()
        print(f"{what} …", end="", file=sys.stderr, flush=True)

    timer = threading.Timer(_AFTER_S, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if shown.is_set():
            print(_ERASE, end="", file=sys.stderr, flush=True)
