"""Calls back when files come and go in folders, by the kernel's inotify(7).

After its restart the kubelet fails a pod for good that it admits before the plugin has registered.
So a new kubelet.sock must be seen within milliseconds, not only at the next look. What inotify
misses (a folder that was removed and made again, a kernel without inotify) the look finds a second
later.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Self

from inotify_simple import INotify, flags

_CHANGES: Final = flags.CREATE | flags.DELETE | flags.MOVED_TO | flags.ONLYDIR


class FolderWatch:
    """``changed`` is called on the event loop after anything came or went in one of ``folders``."""

    def __init__(self, folders: Iterable[Path], changed: Callable[[], None]) -> None:
        self._folders = tuple(dict.fromkeys(folders))
        self._changed = changed
        self._inotify: INotify | None = None

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError, AttributeError):  # a libc without it has no such name
            self._inotify = INotify(nonblocking=True)
        if self._inotify is not None:
            self.watch()
            asyncio.get_running_loop().add_reader(self._inotify, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        if self._inotify is not None:
            asyncio.get_running_loop().remove_reader(self._inotify)
            self._inotify.close()
            self._inotify = None

    def watch(self) -> None:
        """Watch the folders as they are now; a folder that was made again needs a new watch."""
        if self._inotify is None:
            return
        for folder in self._folders:
            # Adding a folder twice changes nothing; a missing one is added at a later call.
            with contextlib.suppress(OSError):
                self._inotify.add_watch(folder, _CHANGES)

    def _read(self) -> None:
        if self._inotify is not None:
            self._inotify.read(timeout=0)  # which file it was does not matter
            self._changed()
