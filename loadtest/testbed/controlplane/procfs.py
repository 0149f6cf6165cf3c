"""What the kernel says of a process: CPU time to the nanosecond, resident memory (proc(5))."""

import os
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """Return the time on a CPU of all threads that live (schedstat, in nanoseconds).

    ``/proc/PID/stat`` counts in hundredths of a second, too coarse for a short turn. A thread that
    ended takes its time along: compare two readings between which none ends.
    """
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def resident_mib(pid: int) -> float:
    """Return resident MiB: the second figure of statm, in pages."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2
