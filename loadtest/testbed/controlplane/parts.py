"""A control plane made of programs in one temporary directory, whatever the programs are."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from loadtest.testbed.controlplane.credentials import Credentials
    from loadtest.testbed.controlplane.programs import Program


class Parts(ABC):
    """Programs with names, their directory and their credentials; an async context manager."""

    url: str
    credentials: Credentials

    def __init__(self, prefix: str) -> None:
        """``prefix``: begins the name of the temporary directory. Nothing starts yet."""
        self._prefix = prefix
        self._programs: dict[str, Program] = {}
        self._directory: Path | None = None

    @abstractmethod
    async def _bring_up(self) -> None:
        """Start what runs from the beginning; the directory is there."""

    @abstractmethod
    async def _take_down(self) -> None:
        """End all programs, clients before servers; some may never have started."""

    async def __aenter__(self) -> Self:
        try:
            self._directory = Path(tempfile.mkdtemp(prefix=self._prefix))
            await self._bring_up()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop all programs, clients before servers, and remove the directory."""
        await self._take_down()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    @property
    def directory(self) -> Path:
        """The temporary directory: logs, credentials, data."""
        if self._directory is None:
            raise RuntimeError("the control plane is not running: enter it as a context manager")
        return self._directory

    def kubeconfig(self, user: str = "admin", *, server: str | None = None) -> Path:
        """Write and return a kubeconfig; `server` may point to a proxy in front of the plane."""
        return self.credentials.write_kubeconfig(user, server or self.url)

    async def stop(self, name: str) -> None:
        """End a part in an orderly way; one that does not run is left alone."""
        if name in self._programs:
            await self._programs[name].stop()

    def kill(self, name: str) -> None:
        """SIGKILL a part; one that was never started is left alone."""
        if name in self._programs:
            self._programs[name].kill()

    def program(self, name: str) -> Program:
        """Return a part: pid, log, cpu_seconds, suspend, resume."""
        try:
            return self._programs[name]
        except KeyError:
            known = ", ".join(self._programs) or "nothing"
            raise ValueError(f"no part {name!r}: this control plane has {known}") from None

    def crashed(self) -> list[Program]:
        """Return the parts that ended without being stopped or killed from here."""
        return [program for program in self._programs.values() if program.crashed]

    def cpu_seconds(self) -> Mapping[str, float]:
        """CPU seconds used so far by each running part."""
        return {n: p.cpu_seconds() for n, p in self._programs.items() if p.running}
