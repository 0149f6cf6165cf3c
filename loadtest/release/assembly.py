"""All files of a release in one directory, with their checksums."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadtest.release import build, chart, debian, krew, provenance, sbom, wheel
from loadtest.testbed.controlplane.assets import AssetError, Progress

SUMS: Final = "SHA256SUMS"
DEFAULT_URL: Final = "https://downloads.example.com/muster"
DEFAULT_NAME: Final = "muster"


@dataclass(frozen=True, slots=True)
class Release:
    """What was made."""

    directory: Path
    digest: str  # of the image
    files: tuple[Path, ...]


def image(directory: Path, name: str, progress: Progress) -> Release:
    """Write the image's archive alone; AssetError where this machine cannot."""
    directory.mkdir(parents=True, exist_ok=True)
    made = build.parts(progress)
    with tempfile.TemporaryDirectory(prefix="muster-release-") as scratch:
        stacked = build.stack(made, wheel.build(Path(scratch)), Path(scratch))
        target = _archive(directory)
        digest = build.write(stacked, target, f"{name}:{wheel.version()}")
    return Release(directory, digest, (target,))


def everything(directory: Path, name: str, base_url: str, progress: Progress) -> Release:
    """Write all files into a new directory; AssetError where one cannot be made.

    ``name`` is the image's repository, ``base_url`` where the files will be published.
    """
    if directory.exists() and any(directory.iterdir()):
        raise AssetError(f"{directory}: is not empty: remove it, or name another directory")
    directory.mkdir(parents=True, exist_ok=True)
    made, epoch = build.parts(progress), wheel.epoch()
    with tempfile.TemporaryDirectory(prefix="muster-release-") as scratch:
        progress("building the wheel and the image")
        own = wheel.build(Path(scratch))
        stacked = build.stack(made, own, Path(scratch))
        digest = build.write(stacked, _archive(directory), f"{name}:{wheel.version()}")
        shutil.copy(own, directory / own.name)
        progress("building the plugin of kubectl")
        plugin = krew.archive(stacked, made.python, directory, epoch)
    (directory / "muster.yaml").write_text(krew.manifest(plugin, base_url), encoding="utf-8")
    if wheel.revision():
        wheel.sources(directory)
    if chart.package(chart.SOURCE, directory, epoch) is None:
        progress(f"no chart: {chart.SOURCE} is not there")
    subject = sbom.Subject(wheel.version(), digest, epoch, debian.distribution())
    (directory / "sbom.cdx.json").write_text(sbom.document(subject, made), encoding="utf-8")
    statement = provenance.statement(sums(directory), made, wheel.revision(), epoch)
    (directory / "provenance.intoto.json").write_text(statement, encoding="utf-8")
    lines = [f"{digest}  {name}\n" for name, digest in sums(directory).items()]
    (directory / SUMS).write_text("".join(lines), encoding="ascii")
    return Release(directory, digest, tuple(sorted(directory.iterdir())))


def sums(directory: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a directory, by name."""
    found = {}
    for path in sorted(directory.iterdir()):
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _archive(directory: Path) -> Path:
    return directory / f"muster-{wheel.version()}-image.tar"
