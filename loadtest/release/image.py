"""Layers as an OCI image in one archive, which `docker load`, `podman load` and `ctr` read.

::

    oci-layout, index.json ──► blobs/sha256/…: manifest ──► configuration, layers
    manifest.json (docker-archive) ───────────────────────► the same blobs

Source: image-spec 1.1 of the Open Container Initiative; for manifest.json the format of
`docker save`.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

from loadtest.release import layers
from loadtest.release.dockerfile import Settings
from loadtest.release.layers import Layer

_ARCHITECTURES: Final = MappingProxyType({"x86_64": "amd64", "aarch64": "arm64"})  # uname's, Go's
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_CONFIG: Final = "application/vnd.oci.image.config.v1+json"


def architecture() -> str:
    """Return this machine's architecture by the name that images have."""
    machine = platform.machine().lower()
    return _ARCHITECTURES.get(machine, machine)


@dataclass(frozen=True, slots=True)
class Image:
    """What is to be written."""

    layers: Sequence[Layer]
    settings: Settings
    epoch: int
    labels: Mapping[str, str] = field(default_factory=dict)


def write(image: Image, target: Path, name: str) -> str:
    """Write the image called ``name`` (repository:tag) to ``target``; return its digest."""
    config = _json(_configuration(image))
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [
                {"mediaType": layers.MEDIA_TYPE, "digest": one.digest, "size": one.size}
                for one in image.layers
            ],
            "annotations": dict(image.labels),
        }
    )
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [
            _descriptor(_MANIFEST, manifest)
            | {
                "platform": {"architecture": architecture(), "os": "linux"},
                "annotations": {
                    "io.containerd.image.name": name,
                    "org.opencontainers.image.ref.name": name.rpartition(":")[2],
                },
            }
        ],
    }
    docker = {
        "Config": _blob(_digest(config)),
        "RepoTags": [name],
        "Layers": [_blob(one.digest) for one in image.layers],
    }
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json(index),
        "manifest.json": _json([docker]),
        _blob(_digest(config)): config,
        _blob(_digest(manifest)): manifest,
    }
    _archive(image, files, target)
    return _digest(manifest)


def _configuration(image: Image) -> dict[str, object]:
    created = datetime.fromtimestamp(image.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    said = image.settings
    return {
        "created": created,
        "architecture": architecture(),
        "os": "linux",
        "config": {
            "User": said.user,
            "Env": list(said.environment),
            "Entrypoint": list(said.entrypoint),
            "Cmd": list(said.command),
            "WorkingDir": "/",
            "Labels": dict(image.labels),
        },
        "rootfs": {"type": "layers", "diff_ids": [one.diff_id for one in image.layers]},
    }


def _archive(image: Image, files: Mapping[str, bytes], target: Path) -> None:
    blobs = {_blob(one.digest): one.path for one in image.layers}
    with tarfile.open(target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted((*files, *blobs)):
            info = layers.entry(name, image.epoch)
            info.mode = 0o644
            if name in files:
                info.size = len(files[name])
                archive.addfile(info, io.BytesIO(files[name]))
            else:
                info.size = blobs[name].stat().st_size
                with blobs[name].open("rb") as content:
                    archive.addfile(info, content)


def _descriptor(media_type: str, content: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
