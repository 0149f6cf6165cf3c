"""A program whose wall clock a test sets, as ``settimeofday(2)`` sets that of its machine.

    python tests/support/wallclock.py OFFSET_FILE MODULE ARGUMENT…

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
        fresh.write_text(str(offset_s))
        fresh.replace(self._file)  # a reader never sees it half written

    def command(self, command: list[str]) -> list[str]:
        """Return a ``python -m MODULE …`` command so that the module has this clock."""
        python, dash_m, *rest = command
        assert dash_m == "-m", command
        return [python, __file__, str(self._file), *rest]


def _main() -> None:
    offset, *sys.argv = sys.argv[1:]
    sys.path[0] = ""  # as `python -m` has it; this folder's modules are no program's business
    real = time.time

    def wall() -> float:
        return real() + float(Path(offset).read_text())

    time.time = wall
    time.time_ns = lambda: int(wall() * 1e9)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
