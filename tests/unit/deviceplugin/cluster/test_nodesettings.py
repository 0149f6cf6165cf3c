"""What a node's label chooses counts as soon as it changes, and not before the Node is known."""

import asyncio
from pathlib import Path

import pytest

from deviceplugin.allocation.settings import AllocationSettings
from deviceplugin.cluster.nodeconfig import NodeConfig
from deviceplugin.cluster.nodesettings import NodeSettings
from deviceplugin.resources.choice import LABEL
from deviceplugin.resources.settings import ResourceSettings
from muster.kube import wire

FILES = {
    "mixed": "version: v1\nflags: {migStrategy: mixed}",
    "files": "version: v1\nflags: {plugin: {deviceListStrategy: [envvar], "
    "sharedDevicesAllocationPolicy: packed}}",
    "specs": "version: v1\nflags: {plugin: {passDeviceSpecs: true}}",
    "unheard": "version: v1\nflags: {plugin: {deviceIDStrategy: index}}\n"
    "health: {ignoredXIDs: [94]}",
}


class Watched(NodeSettings):
    """Settings that record what they announce."""

    applied: list[tuple[ResourceSettings, AllocationSettings]]
    problems_found: list[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def settings(folder: Path) -> Watched:
    def apply(resources: ResourceSettings, allocation: AllocationSettings) -> None:
        made.applied.append((resources, allocation))

    made = Watched(NodeConfig(folder, ResourceSettings()), AllocationSettings())
    made.applied, made.problems_found = [], []
    made.choices.listen(apply)
    made.problems.listen(made.problems_found.append)
    return made


def node(config: str = "") -> wire.Node:
    labels = {LABEL: config} if config else {}
    return wire.Node(metadata=wire.ObjectMeta(name="n", labels=labels))


def test_they_are_applied_when_the_label_changes_and_not_otherwise(settings: Watched) -> None:
    for label in ("", "", "mixed", "mixed", ""):
        settings.node_changed(node(label))
    assert [r.mig_strategy for r, _ in settings.applied] == ["none", "mixed", "none"]


def test_a_misspelt_label_keeps_what_counts_and_is_reported_once(settings: Watched) -> None:
    settings.node_changed(node("mixed"))
    settings.node_changed(node("mxied"))
    settings.look()
    assert [r.mig_strategy for r, _ in settings.applied] == ["mixed"]
    [problem] = settings.problems_found
    assert "'mxied' is no configuration; allowed are files, mixed, specs, unheard" in problem
    assert "mixed stays" in problem


def test_an_edited_file_counts_without_a_change_of_the_label(
    settings: Watched, folder: Path
) -> None:
    settings.node_changed(node("mixed"))
    (folder / "mixed").write_text(FILES["mixed"].replace("mixed", "single"))
    settings.look()
    (folder / "mixed").write_text("version: v1\nflags: {migStrategy: some}")
    settings.look()
    assert [r.mig_strategy for r, _ in settings.applied] == ["mixed", "single"]
    [problem] = settings.problems_found
    assert "migStrategy" in problem


@pytest.mark.parametrize(
    ("file", "strategy", "shares"),
    [
        ("files", "envvar", "packed"),
        ("specs", "device-specs", "distributed"),
        ("mixed", "cdi-cri", "distributed"),
    ],
)
def test_a_file_says_how_devices_reach_containers(
    settings: Watched, file: str, strategy: str, shares: str
) -> None:
    settings.node_changed(node(file))
    [(_, allocation)] = settings.applied
    assert (allocation.device_list_strategy, allocation.shares) == (strategy, shares)


def test_what_counts_in_the_plugin_s_own_configuration_only_is_reported(settings: Watched) -> None:
    settings.node_changed(node("unheard"))
    xids, ids = settings.problems_found
    assert xids.startswith("unheard: health.ignoredXIDs: has no effect here")
    assert ids.startswith("unheard: flags.plugin.deviceIDStrategy: index has no effect")


async def test_nothing_is_guessed_before_the_node_is_known(settings: Watched) -> None:
    settings.look()
    assert settings.applied == []
    waiting = asyncio.create_task(settings.known())
    await asyncio.sleep(0)
    assert not waiting.done()
    settings.node_changed(node("mixed"))
    await waiting
    assert [r.mig_strategy for r, _ in settings.applied] == ["mixed"]
