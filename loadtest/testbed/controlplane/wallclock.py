"""A program with a wall clock that others set, as ``settimeofday(2)`` sets that of a machine.

    python -m loadtest.testbed.controlplane.wallclock OFFSET_FILE MODULE ARGUMENT…

runs ``python -m MODULE ARGUMENT…`` with ``time.time`` and ``time.time_ns`` off by as many seconds
as the file says at that moment. The monotonic clocks go on, as they do in a kernel. Setting the
machine's own clock would set it for every program of the machine.
"""

import runpy
import sys
import time
from pathlib import Path


class WallClock:
    """The wall clock of programs that are started with ``command``."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0.0)

    def set(self, offset_s: float) -> None:
        """Set the clock to this many seconds before or after the machine's."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(str(offset_s), encoding="ascii")
        fresh.replace(self._file)  # a reader never sees it half written

    def command(self, command: list[str]) -> list[str]:
        """Return a ``python -m MODULE …`` command so that the module has this clock."""
        python, dash_m, *rest = command
        if dash_m != "-m":
            raise ValueError(f"{command}: not of the form `python -m MODULE …`")
        return [python, dash_m, __name__, str(self._file), *rest]


def _main() -> None:
    offset, *sys.argv = sys.argv[1:]
    real = time.time

    def wall() -> float:
        return real() + float(Path(offset).read_text(encoding="ascii"))

    time.time = wall
    time.time_ns = lambda: int(wall() * 1e9)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
