"""Container images without a registry or a builder: docker-archive tars with one program each.

A tar of this form holds one layer, one configuration per image and a manifest.json that names them;
`ctr images import` reads it. Both images share the layer, which holds the witness
(loadtest/testbed/controlplane/gomodules/witness) and nothing else.
"""

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path
from typing import Any, Final

WITNESS: Final = "localhost/muster-witness:1"  # args: PATH..., to report on
PAUSE: Final = "localhost/muster-pause:1"
_PROGRAM: Final = "witness"
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}  # uname's names, Go's names


def write(path: Path, program: Path) -> None:
    """Write an archive with both images to `path`; `program` is the static witness."""
    layer = _tar({_PROGRAM: (program.read_bytes(), 0o755)})
    files = {"layer.tar": (layer, 0o644)}
    manifest = []
    for tag, arguments in ((WITNESS, ["show"]), (PAUSE, ["pause"])):
        config = _config(layer, arguments)
        name = f"{hashlib.sha256(config).hexdigest()}.json"
        files[name] = (config, 0o644)
        manifest.append({"Config": name, "RepoTags": [tag], "Layers": ["layer.tar"]})
    files["manifest.json"] = (json.dumps(manifest).encode(), 0o644)
    path.write_bytes(_tar(files))


def _config(layer: bytes, arguments: list[str]) -> bytes:
    machine = platform.machine().lower()
    config: dict[str, Any] = {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {"Entrypoint": [f"/{_PROGRAM}", *arguments], "Env": ["PATH=/"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    return json.dumps(config).encode()


def _tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, (content, mode) in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), mode
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()
