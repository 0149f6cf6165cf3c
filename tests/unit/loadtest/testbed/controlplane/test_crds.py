"""Fetching CRDs, with a stand-in for the Go command and modules of our own."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from loadtest.testbed.controlplane import crds
from loadtest.testbed.controlplane.assets import AssetError

CRD = "kind: CustomResourceDefinition\nmetadata: {name: gangs.example.com}\n"
GO = """#!/bin/sh
if [ "$1" = env ]; then echo go1.26.8; exit 0; fi
echo "$4" >> "{root}/calls"
echo "go: downloading $4"
echo '{{"Dir": "{root}/module", "Sum": "h1:{digest}="}}'
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module with one CRD beside other YAML, the only one that is asked for."""
    files = tmp_path / "module" / "crds"
    files.mkdir(parents=True)
    (files / "gangs.yaml").write_text(CRD)
    (files / "kustomization.yaml").write_text("kind: Kustomization\n")
    pinned = tmp_path / "go.sum"
    pinned.write_text("example.com/gangs v1.2.3 h1:right=\n")
    monkeypatch.setenv("MUSTER_ASSETS_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(crds, "PINNED", pinned)
    monkeypatch.setattr(crds, "SOURCES", (crds.Source("example.com/gangs", ("crds/*.yaml",)),))
    return tmp_path


@pytest.fixture
def go(module: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def put_on_path(digest: str) -> None:
        program = module / "bin" / "go"
        program.parent.mkdir()
        program.write_text(GO.format(root=module, digest=digest))
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    return put_on_path


def test_crds_are_copied_out_of_their_module_once(module: Path, go: Callable[[str], None]) -> None:
    go("right")
    assert crds.find() is None
    made = crds.ensure()
    assert [file.relative_to(made) for file in made.rglob("*.json")] == [
        Path("example.com_gangs/gangs.example.com.json")
    ]
    assert crds.ensure() == crds.find() == made
    assert (module / "calls").read_text().split() == ["example.com/gangs@v1.2.3"]


def test_a_module_other_than_the_pinned_one_is_refused(
    module: Path, go: Callable[[str], None]
) -> None:
    go("wrong")
    with pytest.raises(AssetError, match=r"its hash is h1:wrong=, .*go\.sum says h1:right="):
        crds.ensure()
    assert crds.find() is None
    assert [path.name for path in (module / "cache").iterdir()] == [".lock"]


def test_a_module_without_its_crds_is_said_so(module: Path, go: Callable[[str], None]) -> None:
    go("right")
    (module / "module" / "crds" / "gangs.yaml").unlink()
    with pytest.raises(AssetError, match=r"example.com/gangs: no CustomResourceDefinition in"):
        crds.ensure()
    assert crds.find() is None


def test_every_source_has_one_pinned_version() -> None:
    pinned = [line.split()[0] for line in crds.PINNED.read_text().splitlines()]
    assert sorted(pinned) == sorted(source.module for source in crds.SOURCES)
