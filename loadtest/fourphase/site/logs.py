"""The logs of the programs, stored after a run that did not go well."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = "report-logs"


def forget(out: Path) -> None:
    """Remove what an earlier run left."""
    shutil.rmtree(out / FOLDER, ignore_errors=True)


def note(out: Path) -> list[str]:
    """Return a line that names the folder of the logs, none if they were not stored."""
    return [f"logs of all programs: {out / FOLDER}"] if (out / FOLDER).is_dir() else []


@dataclass(slots=True)
class Logs:
    """What is to happen with the logs at the end."""

    #: Whether they are stored. False is set only by a run with a good end.
    needed: bool = True


@contextmanager
def keeping(directory: Path, out: Path) -> Iterator[Logs]:
    """Copy ``directory/*.log`` into ``out/report-logs`` at the end, also after an error."""
    logs = Logs()
    try:
        yield logs
    finally:
        if logs.needed:
            (out / FOLDER).mkdir(parents=True, exist_ok=True)
            for log in directory.glob("*.log"):
                shutil.copy(log, out / FOLDER)
