"""The device plugin as a program, beside a fake kubelet."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from deviceplugin.tools import faultswitch

START_S = 60  # a crowded machine; alone it takes a second
END_S = 20  # likewise: two seconds are promised


@dataclass
class PluginProcess:
    """A running `python -m deviceplugin`."""

    process: asyncio.subprocess.Process
    log: Path
    faults: Path
    #: URL of its pages.
    url: str

    async def page(self, name: str) -> str:
        async with aiohttp.ClientSession() as http, http.get(f"{self.url}/{name}") as answer:
            return await answer.text()

    def fault(self, *words: str) -> None:
        """Switch a fault: see deviceplugin.tools.faultswitch."""
        assert faultswitch.main([str(self.faults), *words]) == 0

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()

    async def end(self) -> int:
        """Send SIGTERM; return the exit code."""
        self.process.terminate()
        async with asyncio.timeout(END_S):
            return await self.process.wait()


@asynccontextmanager
async def plugin(
    root: Path,
    *arguments: str,
    machine: str = "dgx-h100",
    name: str = "plugin",
    cluster: bool = False,
    variables: Mapping[str, str] | None = None,
) -> AsyncIterator[PluginProcess]:
    """Run it on the kubelet's ``root`` inside the block; it is killed afterwards if need be.

    ``variables``: added to its environment.
    """
    log, faults = root / f"{name}.log", root / "faults.yaml"
    command = (
        *(sys.executable, "-m", "deviceplugin", "--simulate", machine, "--node-name", "n1"),
        *("--kubelet-dir", str(root), "--faults", str(faults), "--port", "0"),
        *("--cdi-dir", str(root / "cdi")),
        *(() if cluster else ("--no-cluster",)),
        *arguments,
    )
    with log.open("ab") as written:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdout=asyncio.subprocess.PIPE,
            stderr=written,
            env={**os.environ, **(variables or {})},
        )
        try:
            assert process.stdout is not None
            async with asyncio.timeout(START_S):
                line = await process.stdout.readline()
            assert line, log.read_text()
            yield PluginProcess(process, log, faults, json.loads(line)["listening"])
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
