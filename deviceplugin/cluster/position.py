"""Reads a node's place in the network from the operator's file and from LLDP.

A topology file that is missing is reported once, and the node then has no levels from it. A file
that is malformed is reported too, but the levels that it last gave stay.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from deviceplugin.publication.levels import MalformedTopology, levels_in_file
from deviceplugin.publication.lldp import Neighbor, frames, neighbor

log = logging.getLogger(__name__)

LLDP: Final = Path("/run/systemd/netif/lldp")  # of systemd-networkd, with LLDP= on in its files


@dataclass(slots=True)
class Position:
    """What one node knows of its place in the network."""

    #: name of the Node
    node: str
    #: the topology file (``levels.levels_in_file``); None: there is none
    file: Path | None = None
    #: folder of systemd-networkd's LLDP frames; None: they are not read
    lldp: Path | None = None
    _last: dict[str, str] = field(default_factory=dict)
    _problem: str = ""

    def from_file(self) -> Mapping[str, str]:
        """Return this node's levels by the file, as it was when it was last valid."""
        if self.file is None:
            return {}
        try:
            self._last = levels_in_file(self.file.read_bytes(), self.node, source=str(self.file))
        except FileNotFoundError:
            self._last = {}
            self._report(f"{self.file}: does not exist; no level is known from it")
        except (OSError, MalformedTopology) as error:
            self._report(f"{error}; its last valid content still counts")
        else:
            self._problem = ""
        return self._last

    def neighbors(self) -> tuple[Neighbor, ...]:
        """Return the switches that this node's ports receive LLDP from, each once."""
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
        """What is wrong with the file; "" while nothing is."""
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
