"""Writes the state and the decisions of the extender into one file, while it runs.

::

    request ─► state frozen, at one moment ──► open gangs planned, pages written ──► file
       │                                                        a slice at a time
       └── a signal while a dump is being written: ignored

A thread compresses and writes. A dump that fails causes only a line in the log. Leaders and
standbys write dumps; only those of a leader have decisions.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Final

from extender.config.settings import ExtenderConfig
from extender.engine import Clock, Engine
from extender.planning.planner import Planner
from extender.readapi.dumpfile import DumpFile, file_name, prune
from extender.readapi.dumprequests import DumpRequests
from extender.timeslice import Pace
from muster.decisions.recording import Index, RecordingInput, RecordingSource, record

log = logging.getLogger(__name__)

BATCH_BYTES: Final = 256 * 1024  # for one call of the thread: about 2 ms of its time


def replica() -> str:
    """Return the name of this replica: its pod's name, else the host's."""
    return os.environ.get("POD_NAME") or socket.gethostname()


class StateDumper:
    """Writes dumps on request, one at a time."""

    def __init__(
        self,
        engine: Engine,
        planner: Planner,
        config: ExtenderConfig,
        requests: DumpRequests,
        leads: Callable[[], bool],
        listed: Callable[[], bool],
        pace: Pace,
        wall: Clock = time.time,
    ) -> None:
        """``wall`` returns epoch seconds; the names of the files contain them."""
        self._engine = engine
        self._planner = planner
        self._config = config
        self._requests = requests
        self._leads = leads
        self._listed = listed
        self._pace = pace
        self._wall = wall
        self._version = version("muster-scheduler")  # reads a file
        self._writing = False

    def request(self) -> None:
        """Request a dump; the signal handler."""
        if self._writing:
            log.info("dump is being written already")
            return
        self._requests.ask()

    async def run(self) -> None:
        """Write dumps on request, forever."""
        self._check()
        while True:
            name = await self._requests.next()
            self._writing = True
            try:
                await self.dump(name)
            finally:
                self._writing = False

    def _check(self) -> None:
        """Warn at the start if dumps cannot be written, and not only when one is needed."""
        directory = self._config.dump.directory
        if directory is not None and not os.access(directory, os.W_OK | os.X_OK):
            text = "dump.directory cannot be written to; SIGUSR2 will not help"
            log.warning(text, extra={"directory": directory})

    async def dump(self, name: str = "") -> Path | None:
        """Write one dump and return its path, ``None`` if that failed.

        ``name``: of the file; by default it says when the dump was taken.
        """
        directory = self._config.dump.directory
        if directory is None:
            log.error("dump not written: dump.directory is not set in the configuration")
            return None
        began = self._pace.clock()
        taken = self._taken()
        snapshot = taken.frozen.snapshot
        replica, at = self._requests.replica, taken.source.written_at
        name = name or file_name(snapshot.cluster, replica, at)
        try:
            file, index = await self._write(Path(directory), name, taken)
            await asyncio.to_thread(prune, Path(directory), self._config.dump.keep_files)
        except OSError as error:
            log.error("dump failed", extra={"directory": directory, "error": str(error)})  # noqa: TRY400  its text says it all
            return None
        except Exception:  # a bug in the dump must not stop the planner
            log.exception("dump failed", extra={"directory": directory})
            return None
        log.info(
            "dump written",
            extra={
                "path": str(file.path),
                "bytes": file.size,
                "seconds": round(self._pace.clock() - began, 3),
                "generation": snapshot.generation,
                "decisions": len(index.entries),
                "states": len(index.states),
            },
        )
        return file.path

    def _taken(self) -> RecordingInput:
        """Return everything that must be from the same moment."""
        config = self._config
        until = self._pace.clock() + config.dump.answer_seconds
        return RecordingInput(
            RecordingSource(
                version=self._version,
                replica=self._requests.replica,
                leads=self._leads(),
                listed=self._listed(),
                written_at=self._wall(),
                now=self._engine.clock(),
                pin=config.pin,
                spare_count=config.spare_count,
                window_s=config.assembly_window_seconds,
            ),
            self._engine.state.frozen(),
            tuple(self._planner.history),
            self._planner.question,
            self._planner.note,
            lambda: self._pace.clock() < until,
        )

    async def _write(
        self, directory: Path, name: str, taken: RecordingInput
    ) -> tuple[DumpFile, Index]:
        file = await asyncio.to_thread(DumpFile, directory, name)
        try:
            index = await self._feed(file, taken)
            await asyncio.to_thread(file.finish)
        finally:
            await asyncio.to_thread(file.discard)
        return file, index

    async def _feed(self, file: DumpFile, taken: RecordingInput) -> Index:
        pieces = record(taken)
        batch: list[bytes] = []
        size = 0
        while True:
            try:
                piece = next(pieces)
            except StopIteration as end:
                await asyncio.to_thread(file.write, b"".join(batch))
                index: Index = end.value
                return index
            batch.append(piece)
            size += len(piece)
            if size >= BATCH_BYTES:
                await asyncio.to_thread(file.write, b"".join(batch))
                batch, size = [], 0
            await self._pace.breathe()
