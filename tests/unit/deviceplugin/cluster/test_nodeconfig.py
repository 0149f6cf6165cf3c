"""A node takes the configuration that its label names, and keeps it while the next is broken."""

from pathlib import Path

import pytest

from deviceplugin.cluster.nodeconfig import NodeConfig
from deviceplugin.resources.settings import MemorySlices, ResourceSettings

OWN = ResourceSettings(memory=(MemorySlices("aliyun.com/gpu-mem"),))
SLICES = "version: v1\nsharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}"
MIXED = "version: v1\nflags: {migStrategy: mixed, failOnInitError: false}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A ConfigMap as the kubelet mounts it."""
    for name, text in (("slices", SLICES), ("mixed", MIXED), ("..data", "")):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_label_chooses_and_the_plugins_own_settings_fill_in(folder: Path) -> None:
    config = NodeConfig(folder, OWN)
    assert config.look("").taken.resources == OWN
    chosen = config.look("slices")
    assert chosen.name == "slices"
    assert chosen.taken.resources.sharing.time_slicing is not None
    assert chosen.taken.resources.memory == OWN.memory
    assert config.look("mixed").taken.resources.mig_strategy == "mixed"
    assert config.look("").name == ""


def test_fields_without_effect_are_reported_with_the_files_name(folder: Path) -> None:
    [reported] = NodeConfig(folder, OWN).look("mixed").problems
    assert reported.startswith("mixed: flags.failOnInitError: is accepted and has no effect")


def test_a_default_is_for_nodes_without_the_label(folder: Path) -> None:
    config = NodeConfig(folder, OWN, default="slices")
    assert config.look("").name == "slices"
    assert config.look("mixed").name == "mixed"


def test_an_edited_file_counts_at_the_next_look(folder: Path) -> None:
    config = NodeConfig(folder, OWN)
    before = config.look("slices")
    (folder / "slices").write_text(SLICES.replace("4", "8"))
    assert config.look("slices") != before


@pytest.mark.parametrize("mistake", ["label", "file", "folder"])
def test_whatever_breaks_the_last_good_settings_stay_and_it_is_reported(
    folder: Path, mistake: str
) -> None:
    config = NodeConfig(folder, OWN)
    good = config.look("slices")
    if mistake == "file":
        (folder / "slices").write_text("version: v1\nflags: {migStrategy: some}")
    if mistake == "folder":
        for entry in folder.iterdir():
            entry.unlink()
        folder.rmdir()
    now = config.look("slcies" if mistake == "label" else "slices")
    assert (now.name, now.taken) == (good.name, good.taken)
    [reported] = now.problems
    assert {"label": "slcies", "file": "migStrategy", "folder": "cannot be read"}[
        mistake
    ] in reported
