"""The image of this source tree; its slow parts are kept in the assets' cache.

::

    base      Debian's packages    key: name, version and checksum of each
    wheels    the locked wheels    key: the lock file, the base's Python and C library
    packages  they, laid out       key: the same
    muster    this source tree     made each time, in seconds
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PathDistribution
from pathlib import Path, PurePosixPath
from typing import Final
from zipfile import Path as ZipPath

from loadtest.release import base, debian, dockerfile, image, layers, packages, wheel, wheels
from loadtest.release.debian import Package
from loadtest.release.layers import Layer
from loadtest.release.wheels import Target
from loadtest.testbed.controlplane.assets import Progress, cache_directory, locked

LOCK: Final = wheel.ROOT / "requirements" / "runtime.txt"
_LAYER, _RECORD, _ROOT = "layer.tar.gz", "record.json", "root"  # files of a kept part
_TITLE: Final = "Muster"
_RECIPES: Final = ("base.py", "layers.py", "packages.py")  # a change of them makes layers anew


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel of another project in the image."""

    name: str
    version: str
    license: str  # an SPDX expression, or what the project says, or ""
    sha256: str


@dataclass(frozen=True, slots=True)
class Parts:
    """What the image is made of, lowest layer first."""

    base: Layer
    packages: Layer
    base_root: Path  # the base as a directory
    debs: tuple[Package, ...]
    wheels: tuple[Wheel, ...]
    python: str

    @property
    def target(self) -> Target:
        """The Python that wheels must fit."""
        return Target(self.python, base.glibc(self.base_root))


def parts(progress: Progress = lambda _line: None) -> Parts:
    """Return both lower layers, made if need be; AssetError where this machine cannot."""
    place, debs = _base(progress)
    python = base.python(place / _ROOT)
    target = Target(python, base.glibc(place / _ROOT))
    above = _packages(place / _ROOT, target, progress)
    found = json.loads((above / _RECORD).read_text(encoding="utf-8"))
    return Parts(
        base=_layer(place),
        packages=_layer(above),
        base_root=place / _ROOT,
        debs=tuple(debs),
        wheels=tuple(Wheel(**one) for one in found["wheels"]),
        python=python,
    )


def stack(made: Parts, own: Path, scratch: Path) -> tuple[Layer, ...]:
    """Return the image's layers with Muster's wheel ``own``; its layer lies below ``scratch``."""
    return (made.base, made.packages, own_layer(made, own, scratch))


def write(
    stacked: tuple[Layer, ...], target: Path, name: str, more: Mapping[str, str] | None = None
) -> str:
    """Write the image called ``name`` to ``target``; return its digest. ``more`` are labels."""
    settings = dockerfile.read(wheel.ROOT / "Dockerfile")
    return image.write(
        image.Image(stacked, settings, wheel.epoch(), labels(more or {})), target, name
    )


def own_layer(made: Parts, own: Path, scratch: Path) -> Layer:
    """Return the layer of Muster itself, in a file below ``scratch``."""
    root = scratch / _ROOT
    with wheel.usual_modes():
        packages.lay_out([own], root, made.python)
        packages.compile_all(root, packages.site(made.python), made.base_root)
        packages.add_command(root, made.python)
    return layers.pack(root, scratch / _LAYER, wheel.epoch())


def labels(more: Mapping[str, str]) -> dict[str, str]:
    """Return the image's labels (annotations.md of the image-spec); ``more`` without the prefix."""
    found = {
        "title": _TITLE,
        "description": "Gang and topology scheduling under an unmodified kube-scheduler",
        "licenses": "Apache-2.0",
        "version": wheel.version(),
        "revision": wheel.revision(),
        **more,
    }
    return {f"org.opencontainers.image.{key}": text for key, text in found.items() if text}


def _base(progress: Progress) -> tuple[Path, list[Package]]:
    with tempfile.TemporaryDirectory(prefix="muster-apt-") as private:
        apt, debs = debian.apt(Path(private), progress)

        def make(out: Path) -> None:
            progress(f"making the image's base of {len(debs)} packages of {debian.distribution()}")
            downloads = out / "debs"
            downloads.mkdir()
            root = out / _ROOT
            base.lay_out(apt.download(debs, downloads), root)
            shutil.rmtree(downloads)
            library = PurePosixPath("usr/lib") / f"python{base.python(root)}"
            packages.compile_all(root, library, root)
            _keep(out, layers.pack(root, out / _LAYER, _epoch_of_parts()))

        return _kept("base", repr(debs) + _code(), make, progress), debs


def _packages(base_root: Path, target: Target, progress: Progress) -> Path:
    inputs = f"{LOCK.read_text(encoding='utf-8')}{target}"
    downloads = _wheels(inputs, target, progress)

    def make(out: Path) -> None:
        found = sorted(downloads.glob("*.whl"))
        progress(f"laying out {len(found)} wheels")
        root = out / _ROOT
        packages.lay_out(found, root, target.python)
        packages.compile_all(root, packages.site(target.python), base_root)
        layer = layers.pack(root, out / _LAYER, _epoch_of_parts())
        _keep(out, layer, wheels=[asdict(described(one)) for one in found])
        shutil.rmtree(root)

    return _kept("packages", inputs + _code(), make, progress)


def _wheels(inputs: str, target: Target, progress: Progress) -> Path:
    def make(out: Path) -> None:
        wanted = wheels.requirements(LOCK.read_text(encoding="utf-8"), target)
        progress(f"fetching {len(wanted)} locked wheels for Python {target.python}")
        wheels.fetch(wanted, target, out)

    return _kept("wheels", inputs, make, progress)


def described(path: Path) -> Wheel:
    """Return what a wheel's own metadata says of it."""
    folder = next(entry for entry in ZipPath(path).iterdir() if entry.name.endswith(".dist-info"))
    metadata = PathDistribution(folder).metadata
    fields = [metadata[key] for key in ("License-Expression", "License") if key in metadata]
    license_ = fields[0] if fields else ""
    return Wheel(
        name=metadata["Name"],
        version=metadata["Version"],
        license=license_ if "\n" not in license_ else "",
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
    )


def _epoch_of_parts() -> int:
    """Return the time of everything in kept layers: it must not depend on who made them."""
    return 0


def _kept(name: str, inputs: str, make: Callable[[Path], None], progress: Progress) -> Path:
    """Return the cache's directory of a part, made once for its inputs."""
    digest = hashlib.sha256(inputs.encode())
    cache = cache_directory() / "image"  # with a lock of its own: nobody else waits for it
    place = cache / f"{name}-{digest.hexdigest()[:12]}"
    if not place.is_dir():
        with locked(cache, progress):
            if not place.is_dir():
                with tempfile.TemporaryDirectory(dir=cache, prefix="building-") as scratch:
                    out = Path(scratch) / name
                    out.mkdir()
                    with wheel.usual_modes():
                        make(out)
                    out.rename(place)
    return place


def _code() -> str:
    return "".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in _RECIPES)


def _keep(out: Path, layer: Layer, **more: object) -> None:
    record = {"diff_id": layer.diff_id, **more}
    (out / _RECORD).write_text(json.dumps(record), encoding="utf-8")


def _layer(place: Path) -> Layer:
    record = json.loads((place / _RECORD).read_text(encoding="utf-8"))
    return layers.describe(place / _LAYER, record["diff_id"])
