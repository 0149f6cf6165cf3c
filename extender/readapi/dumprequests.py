"""What asks for a dump: a signal, or a plan that breaks a rule.

::

    SIGUSR2 ──────────────────────────► a dump, named when it is written
    plan refused ── PERIOD_S over? ───► a dump, named at once, so that the log line can name it
                         └── no ──────► none: the log line names the last of this kind

Asking costs the planner nothing: ``extender.readapi.dump`` writes later, beside it.
"""

import asyncio
from pathlib import Path
from typing import Final

from extender.engine import Clock
from extender.readapi.dumpfile import file_name

PERIOD_S: Final = 600.0
"""Between two dumps about faults. A gang with one is planned again each minute, and its dumps would
displace those that an operator has asked for."""


class DumpRequests:
    """Requests for dumps of one replica. Until one is taken, several count as one."""

    def __init__(self, directory: str | None, cluster: str, replica: str, clock: Clock) -> None:
        """``replica``: its name. ``clock`` returns epoch seconds."""
        self.replica = replica
        self._directory = directory
        self._cluster = cluster
        self._clock = clock
        self._asked = asyncio.Event()
        self._name = ""  # of the next file, "" for any
        self._last = ""  # the path of the last dump about a fault
        self._last_at = float("-inf")

    def ask(self) -> None:
        """Ask for a dump."""
        self._asked.set()

    def fault(self) -> str:
        """Ask for a dump about a fault; return its path, or why there will be none."""
        if self._directory is None:
            return "none: dump.directory is not set in the configuration"
        now = self._clock()
        if now - self._last_at < PERIOD_S:
            return f"none: one was written {round(now - self._last_at)} s ago, {self._last}"
        self._name = file_name(self._cluster, self.replica, now)
        self._last, self._last_at = str(Path(self._directory) / self._name), now
        self._asked.set()
        return self._last

    async def next(self) -> str:
        """Wait for a request; return the file name that was promised, "" for none."""
        await self._asked.wait()
        self._asked.clear()
        name, self._name = self._name, ""
        return name
