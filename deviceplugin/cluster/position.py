"""Reads what a node is told of its place in the network: the operator's file, and LLDP.

Files only. What cannot be read is told once and counts as nothing known; what was written to the
Node before is then taken away, unless the file is merely absent for a moment: a file that is
malformed keeps what was last understood.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from deviceplugin.publication.levels import MalformedTopology, told_by
from deviceplugin.publication.lldp import Neighbor, frames, neighbor

log = logging.getLogger(__name__)

LLDP: Final = Path("/run/systemd/netif/lldp")  # of systemd-networkd, with LLDP= on in its files


@dataclass(slots=True)
class Position:
    """``file``: the topology file (``levels.told_by``), None for none. ``lldp``: None for none."""

    node: str
    file: Path | None = None
    lldp: Path | None = None
    _told: dict[str, str] = field(default_factory=dict)
    _problem: str = ""

    def told(self) -> Mapping[str, str]:
        """Return what the file says of this node, as it was when it could last be understood."""
        if self.file is None:
            return {}
        try:
            self._told = told_by(self.file.read_bytes(), self.node, source=str(self.file))
        except FileNotFoundError:
            self._told = {}
            self._report(f"{self.file}: is not there; nothing is known from it")
        except (OSError, MalformedTopology) as error:
            self._report(f"{error}; what it said before still counts")
        else:
            self._problem = ""
        return self._told

    def neighbors(self) -> tuple[Neighbor, ...]:
        """Return the switches that this node's ports hear, without repetition."""
        if self.lldp is None:
            return ()
        found = {
            each
            for path in _files(self.lldp)
            for frame in frames(_data(path))
            if (each := neighbor(frame)) is not None
        }
        return tuple(sorted(found, key=lambda each: (each.name, each.port)))

    @property
    def problem(self) -> str:
        """What is wrong with the file, "" while nothing is."""
        return self._problem

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            log.warning("topology file", extra={"problem": problem})
        self._problem = problem


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.name.isdigit())
    except OSError:
        return []


def _data(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # the interface went away between the two calls
