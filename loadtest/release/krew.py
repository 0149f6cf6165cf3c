"""`kubectl muster` as one archive that needs no Python of the user's, and its krew manifest.

The archive has the image's files and a launcher: the base's own loader starts the base's own
Python. So it is for this machine's platform alone; for another one build it there, or use pip.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final

import yaml

from loadtest.release import image, layers, packages, wheel
from loadtest.release.layers import Layer

LAUNCHER: Final = "kubectl-muster"
_START: Final = "start.py"
_SCRIPT: Final = """\
#!/bin/sh
# Starts the Python of this folder, wherever the folder is; links to this file are followed.
set -e
here=$(dirname "$(readlink -f "$0")")
unset PYTHONPATH
PYTHONHOME=$here/usr
export PYTHONHOME
exec "$here/{loader}" --library-path "$here/{libraries}" "$here/usr/bin/python{python}" \\
  -s -B "$here/{start}" "$@"
"""
_STARTED: Final = """\
import os
import sys

# Programs that this one starts, such as credential plugins, have a Python of their own.
del os.environ["PYTHONHOME"]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "{site}"))

from muster.cli.main import main

sys.exit(main())
"""
_Entry = tuple[tarfile.TarInfo, IO[bytes] | None]
_KEPT: Final = ("usr/bin/", "usr/lib/", "opt/muster/lib/", "opt/muster/share/", "usr/share/doc/")


def archive(stacked: Sequence[Layer], python: str, directory: Path, epoch: int) -> Path:
    """Write the archive for this platform into a directory."""
    platform = f"linux-{image.architecture()}"
    target = directory / f"kubectl-muster-{wheel.version()}-{platform}.tar.gz"
    with (
        target.open("wb") as out,
        gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0, compresslevel=6) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as made,
    ):
        loader = ""
        for info, content in _entries(stacked):
            if info.name.startswith("usr/lib/") and "/ld-linux-" in info.name:
                loader = info.name
            made.addfile(info, content)
        started = _STARTED.format(site=packages.site(python))
        for name, text, mode in (
            ("LICENSE", (wheel.ROOT / "LICENSE").read_bytes(), 0o644),
            (LAUNCHER, _script(loader, python).encode(), 0o755),
            (_START, started.encode(), 0o644),
        ):
            info = layers.entry(name, epoch)
            info.size, info.mode = len(text), mode
            made.addfile(info, io.BytesIO(text))
    return target


def manifest(archived: Path, base_url: str) -> str:
    """Return the krew manifest of an archive that will lie below ``base_url``.

    Source: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
    """
    platform = {
        "selector": {"matchLabels": {"os": "linux", "arch": image.architecture()}},
        "uri": f"{base_url.rstrip('/')}/{archived.name}",
        "sha256": hashlib.sha256(archived.read_bytes()).hexdigest(),
        "bin": LAUNCHER,
    }
    return yaml.safe_dump(
        {
            "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
            "kind": "Plugin",
            "metadata": {"name": "muster"},
            "spec": {
                "version": f"v{wheel.version()}",
                "shortDescription": "Ask why jobs wait and where they will go",
                "description": "Shows gangs, their places and why they wait.\n",
                "caveats": "Muster must be installed in the cluster.\n",
                "platforms": [platform],
            },
        },
        sort_keys=False,
    )


def _script(loader: str, python: str) -> str:
    libraries = loader.rpartition("/")[0]
    return _SCRIPT.format(loader=loader, libraries=libraries, python=python, start=_START)


def _entries(stacked: Sequence[Layer]) -> Iterator[_Entry]:
    """Yield the layers' files that the plugin needs; links that lead out of the folder are not."""
    for layer in stacked:
        with tarfile.open(layer.path, mode="r|gz") as packed:
            for info in packed:
                wanted = info.name.startswith(_KEPT)
                inside = not (info.issym() and info.linkname.startswith("/"))
                if wanted and inside and not info.isdir():
                    content = packed.extractfile(info) if info.isreg() else None
                    yield info, content
