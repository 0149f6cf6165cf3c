"""Hears from the kernel when files come and go in folders: inotify(7), by ctypes.

A pod that a kubelet takes up after its restart, before the plugin has registered, is Failed for
good. So the new kubelet.sock is to be seen within milliseconds, and not at the next look. What is
missed (a folder that was removed and made anew, a kernel without inotify) the look finds, a second
later: nothing depends on this module.
"""

import asyncio
import contextlib
import ctypes
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Self

# sys/inotify.h
_CREATE: Final = 0x100
_DELETE: Final = 0x200
_MOVED_TO: Final = 0x80
_ONLY_DIRECTORY: Final = 0x01000000
_READ_BYTES: Final = 4096


class FolderTold:
    """``told`` is called on the event loop after anything came or went in one of ``folders``."""

    def __init__(self, folders: Iterable[Path], told: Callable[[], None]) -> None:
        self._folders = tuple(dict.fromkeys(folders))
        self._told = told
        self._descriptor = -1
        self._libc = ctypes.CDLL(None, use_errno=True)

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError, AttributeError):  # a libc without it has no such name
            self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor >= 0:
            self.watch()
            asyncio.get_running_loop().add_reader(self._descriptor, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def watch(self) -> None:
        """Watch the folders as they are now; one that was made anew is another for the kernel."""
        for folder in self._folders if self._descriptor >= 0 else ():
            # The same folder again changes nothing; one that is not there is left to the next time.
            self._libc.inotify_add_watch(
                self._descriptor,
                os.fsencode(folder),
                _CREATE | _DELETE | _MOVED_TO | _ONLY_DIRECTORY,
            )

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while len(os.read(self._descriptor, _READ_BYTES)) > _READ_BYTES // 2:
                pass  # which file it was does not matter
        self._told()
