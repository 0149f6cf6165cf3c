"""The archive is an OCI layout and a docker-archive at once, and its digests are true."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from loadtest.release import image, layers
from loadtest.release.dockerfile import Settings
from loadtest.release.image import Image

SETTINGS = Settings(("PATH=/bin",), "65532:65532", ("muster",), ("--help",))


@pytest.fixture
def made(tmp_path: Path) -> Image:
    root = tmp_path / "root"
    root.mkdir()
    (root / "program").write_text("a program")
    layer = layers.pack(root, tmp_path / "layer", 7)
    return Image([layer], SETTINGS, 7, {"org.opencontainers.image.version": "1"})


def blobs(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive}  # type: ignore[union-attr]


def test_every_blob_has_the_digest_that_it_is_named_by(made: Image, tmp_path: Path) -> None:
    digest = image.write(made, tmp_path / "image.tar", "muster:1")
    files = blobs(tmp_path / "image.tar")
    named = {name: text for name, text in files.items() if name.startswith("blobs/")}
    assert len(named) == 3
    for name, content in named.items():
        assert name == f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"
    (entry,) = json.loads(files["index.json"])["manifests"]
    assert entry["digest"] == digest


def test_index_manifest_and_configuration_lead_to_the_layers(made: Image, tmp_path: Path) -> None:
    image.write(made, tmp_path / "image.tar", "example.com/muster:1")
    files = blobs(tmp_path / "image.tar")

    def blob(descriptor: dict) -> bytes:
        content = files[f"blobs/{descriptor['digest'].replace(':', '/')}"]
        assert len(content) == descriptor["size"]
        return content

    (entry,) = json.loads(files["index.json"])["manifests"]
    assert entry["annotations"]["io.containerd.image.name"] == "example.com/muster:1"
    manifest = json.loads(blob(entry))
    config = json.loads(blob(manifest["config"]))
    assert config["config"]["User"] == "65532:65532"
    assert config["config"]["Entrypoint"] == ["muster"]
    assert config["config"]["Labels"] == made.labels
    assert config["rootfs"]["diff_ids"] == [made.layers[0].diff_id]
    assert [one["digest"] for one in manifest["layers"]] == [made.layers[0].digest]
    (docker,) = json.loads(files["manifest.json"])
    assert docker["RepoTags"] == ["example.com/muster:1"]
    assert {docker["Config"], *docker["Layers"]} <= files.keys()


def test_written_twice_it_has_the_same_bytes(made: Image, tmp_path: Path) -> None:
    for name in ("one", "two"):
        image.write(made, tmp_path / name, "muster:1")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
