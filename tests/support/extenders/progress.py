"""What a load test wrote to stderr beside its progress, and what its programs had to say."""

import re
from pathlib import Path
from typing import Final

_PROGRESS: Final = re.compile(r"muster loadtest: (starting |beside bare: |[\d,]+ s: )")


def but_progress(stderr: str) -> str:
    """Return the lines that tell of something else, as they were written."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not _PROGRESS.match(line))


def ends_of_logs(out: Path, *, lines: int = 40, width: int = 400) -> str:
    """Return the last lines of each log that a run stored, those of the extenders last."""
    logs = sorted((out / "report-logs").glob("*.log"), key=lambda log: "extender" in log.stem)
    return "\n".join(f"── {log.name}\n{_end(log, lines, width)}" for log in logs)


def _end(log: Path, lines: int, width: int) -> str:
    written = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(line[:width] for line in written[-lines:])
