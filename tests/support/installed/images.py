"""The images that an installation needs: Muster's by two tags, and kube-scheduler's."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from loadtest.release import build, debian, image, layers, wheel
from loadtest.release.dockerfile import PATH, Settings
from loadtest.testbed.controlplane.assets import KUBERNETES, Minor, ensure

MUSTER: Final = "localhost/muster"
KUBE_SCHEDULER: Final = "registry.k8s.io/kube-scheduler"
NOW, NEXT = "0.1.0", "0.1.1"  # tags


@dataclass(frozen=True, slots=True)
class Images:
    """Archives, and the tags in them."""

    archives: tuple[Path, ...]
    scheduler_tag: str


def make(directory: Path, minor: Minor) -> Images:
    """Write the archives; skips where this machine cannot make an image's base."""
    if reason := debian.why_not():
        pytest.skip(reason)
    tag = f"v{KUBERNETES[minor].version}"
    parts = build.parts()
    own = wheel.build(directory)
    stacked = build.stack(parts, own, directory)
    archives = []
    for version in (NOW, NEXT):
        archives.append(directory / f"muster-{version}.tar")
        build.write(stacked, archives[-1], f"{MUSTER}:{version}", {"version": version})
    archives.append(directory / "kube-scheduler.tar")
    _kube_scheduler(archives[-1], minor, tag)
    return Images(tuple(archives), tag)


def _kube_scheduler(target: Path, minor: Minor, tag: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        program = root / "usr" / "local" / "bin" / "kube-scheduler"
        program.parent.mkdir(parents=True)
        shutil.copy(ensure(minor=minor).kube_scheduler, program)
        layer = layers.pack(root, Path(scratch) / "layer.tar.gz", 0)
        settings = Settings((f"PATH={PATH}",), "65532:65532", (), ("kube-scheduler",))
        image.write(image.Image([layer], settings, 0), target, f"{KUBE_SCHEDULER}:{tag}")
