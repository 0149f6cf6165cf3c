"""The Helm chart as an archive, as `helm package` lays it out, with the same bytes each time."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

from loadtest.release import layers, wheel

SOURCE: Final = wheel.ROOT / "manifests" / "helm" / "muster"


def package(source: Path, directory: Path, epoch: int) -> Path | None:
    """Write NAME-VERSION.tgz into a directory; None where there is no chart at ``source``."""
    description = source / "Chart.yaml"
    if not description.is_file():
        return None
    chart = yaml.safe_load(description.read_text(encoding="utf-8"))
    name, version = chart["name"], chart["version"]
    # Helm reads the name from the first entry's folder (pkg/chart/loader/archive.go).
    files = sorted(path for path in _files(source) if path != description)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in (description, *files):
            info = layers.entry(f"{name}/{path.relative_to(source).as_posix()}", epoch)
            content = path.read_bytes()
            info.size, info.mode = len(content), 0o644
            archive.addfile(info, io.BytesIO(content))
    target = directory / f"{name}-{version}.tgz"
    target.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return target


def _files(source: Path) -> Iterator[Path]:
    """Yield all files that .helmignore does not name; links to folders are followed, as by helm."""
    lines = (source / ".helmignore").read_text(encoding="utf-8").splitlines()
    ignored = {line for line in lines if line and not line.startswith("#")}
    for folder, _, names in os.walk(source, followlinks=True):
        yield from (Path(folder) / name for name in names if name not in ignored)
