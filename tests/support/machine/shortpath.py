"""Folders with short paths: a unix socket's path has at most 107 bytes, pytest's are longer."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def short_folder() -> Iterator[Path]:
    """Yield a folder of its own, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="m-") as name:
        yield Path(name)
