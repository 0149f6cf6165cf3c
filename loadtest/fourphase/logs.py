"""What the programs wrote, kept where it may be needed: of a run that did not go well."""

import shutil
from pathlib import Path
from types import TracebackType
from typing import Final, Self

FOLDER: Final = "report-logs"


def forget(out: Path) -> None:
    """Remove what an earlier run left."""
    shutil.rmtree(out / FOLDER, ignore_errors=True)


def told(out: Path) -> list[str]:
    """Return a line that says where they are, none where none were kept."""
    return [f"logs of all programs: {out / FOLDER}"] if (out / FOLDER).is_dir() else []


class Logs:
    """A context manager that copies ``directory/*.log`` into ``out/report-logs`` when it ends.

    ``needed``: whether they are; so they are unless somebody says otherwise.
    """

    def __init__(self, directory: Path, out: Path) -> None:
        self._directory, self._into = directory, out / FOLDER
        self.needed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.needed:
            return
        self._into.mkdir(parents=True, exist_ok=True)
        for log in self._directory.glob("*.log"):
            shutil.copy(log, self._into)
