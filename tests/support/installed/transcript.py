"""Commands of a recorded terminal, run again, and what of their output stays the same."""

import asyncio
import re
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support.installed.site import Site

from loadtest.demo import terminal
from loadtest.demo.terminal import PROMPT
from loadtest.testbed.controlplane.assets import ensure_helm

ROOT = Path(__file__).parents[3]
# What is another one each time: names that Kubernetes makes up, days, and every number.
_ANOTHER = (
    (re.compile(r"_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "_ID"),
    (re.compile(r"-[0-9a-z]{8,10}-[0-9a-z]{5}(?![0-9a-z])"), "-POD"),
    (re.compile(r"(?<=-\d)-[0-9a-z]{5}\b"), "-POD"),
    (re.compile(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2}\b"), "DAY"),
    (re.compile(r"(\d+(\.\d+)?(ms|s|m|h))+\b"), "TIME"),
    (re.compile(r"\d+(\.\d+)?"), "N"),
    (re.compile(r" +"), " "),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One command, and the lines that it printed."""

    command: str
    shown: tuple[str, ...]


def entries(recorded: str) -> list[Entry]:
    """Return the commands of a recorded terminal."""
    parts = f"\n{recorded.rstrip()}".split(f"\n{PROMPT}")[1:]
    return [Entry(first, tuple(rest)) for first, *rest in (part.split("\n") for part in parts)]


def written(found: list[Entry]) -> str:
    """Return commands and their output as a recorded terminal."""
    lines = (line for each in found for line in (f"{PROMPT}{each.command}", *each.shown))
    return "".join(f"{line}\n" for line in lines)


def lasting(lines: tuple[str, ...]) -> list[str]:
    """Return lines without what is another one each time."""
    made = []
    for line in lines:
        for pattern, word in _ANOTHER:
            line = pattern.sub(word, line)  # noqa: PLW2901  one after the other
        made.append(line.strip())
    return made


@dataclass(frozen=True, slots=True)
class Recording:
    """A page with a recorded terminal, and the picture of it."""

    page: Path
    picture: Path
    title: str

    @property
    def entries(self) -> list[Entry]:
        """The commands, with what they printed."""
        return entries(terminal.recording(self.page))

    @property
    def drawn(self) -> str:
        """The picture as it is to be."""
        return terminal.picture(terminal.recording(self.page), self.title)

    def record(self, found: list[Entry]) -> None:
        """Write commands and their output into the page, and draw the picture."""
        text, page = written(found), self.page.read_text(encoding="utf-8")
        self.page.write_text(terminal.BLOCK.sub(lambda _: text, page, count=1), encoding="utf-8")
        self.picture.write_text(terminal.picture(text, self.title), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Terminal:
    """A shell in a checkout, with kubectl and muster, and a kubeconfig."""

    #: Where commands run.
    folder: Path
    kubeconfig: Path
    #: Says what is in the cluster, when a command fails.
    told: Callable[[], Awaitable[str]]
    #: More variables of its environment.
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def on(cls, site: Site, folder: Path) -> "Terminal":
        """Return one on a site, with helm; ``values.yaml`` is the site's."""
        made = cls(folder, site.plane.kubeconfig(), site.told).laid_out()
        (folder / "bin" / "helm").symlink_to(ensure_helm())
        shutil.copy(site.values, folder / "values.yaml")
        return made

    def laid_out(self) -> "Terminal":
        """Lay the folder out: programs, documents and manifests."""
        programs = self.folder / "bin"
        programs.mkdir()
        kubectl = shutil.which("kubectl")
        assert kubectl is not None
        (programs / "kubectl").symlink_to(kubectl)
        for name in ("muster", "kubectl-muster"):
            (programs / name).write_text(
                f'#!/bin/sh\nexec {sys.executable} -m muster.cli.main "$@"\n'
            )
            (programs / name).chmod(0o755)
        for name in ("docs", "manifests"):
            (self.folder / name).symlink_to(ROOT / name)
        return self

    async def again(self, shown: Entry, asks: tuple[str, ...], patience_s: float) -> Entry:
        """Run a command; one that only ``asks`` runs again until it prints what is shown."""
        found = await self.run(shown.command)
        deadline = asyncio.get_running_loop().time() + patience_s
        while shown.command.startswith(asks) and lasting(found.shown) != lasting(shown.shown):
            if asyncio.get_running_loop().time() > deadline:
                break
            found = await self.run(shown.command)
        return found

    async def run(self, command: str) -> Entry:
        """Run a command as it was typed; AssertionError with all that it said if it fails."""
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", command),
            cwd=self.folder,
            env={
                "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
                "HOME": str(self.folder),
                "KUBECONFIG": str(self.kubeconfig),
                **self.variables,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, complaints = await process.communicate()
        said = f"{PROMPT}{command}\n{out.decode()}{complaints.decode()}"
        assert process.returncode == 0, f"{said}\n{await self.told()}"
        return Entry(command, tuple(line.rstrip() for line in out.decode().splitlines()))
