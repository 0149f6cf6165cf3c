"""What a node's label chooses counts as soon as it changes, and not before the Node is known."""

import asyncio
from pathlib import Path

import pytest

from deviceplugin.allocation.settings import AllocationSettings
from deviceplugin.cluster.nodeconfig import NodeConfig
from deviceplugin.cluster.nodesettings import NodeSettings, allocation
from deviceplugin.resources.choice import LABEL
from deviceplugin.resources.nvidia import AppliedFields
from deviceplugin.resources.settings import ResourceSettings
from muster.kube import wire

FILES = {
    "mixed": "version: v1\nflags: {migStrategy: mixed}",
    "files": "version: v1\nflags: {plugin: {deviceListStrategy: [envvar], "
    "sharedDevicesAllocationPolicy: packed}}",
    "specs": "version: v1\nflags: {plugin: {passDeviceSpecs: true}}",
    "both": "flags: {plugin: {passDeviceSpecs: true, deviceListStrategy: [cdi-cri, envvar]}}",
    "notes": "flags: {plugin: {deviceListStrategy: cdi-annotations}}",
    "silent": "flags: {gdsEnabled: true, plugin: {passDeviceSpecs: true, "
    "deviceListStrategy: [cdi-cri], cdiAnnotationPrefix: example.com/}}",
    "runtime": "flags: {gdrcopyEnabled: true, mofedEnabled: true, gdsEnabled: false, "
    "plugin: {deviceListStrategy: envvar}}",
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
    assert "'mxied' is no configuration; allowed are both, files, mixed" in problem
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
    ("file", "strategies", "files", "shares"),
    [
        ("files", ("envvar",), False, "packed"),
        ("specs", ("envvar",), True, "distributed"),
        ("both", ("cdi-cri", "envvar"), True, "distributed"),
        ("notes", ("cdi-annotations",), False, "distributed"),
        ("silent", ("cdi-cri",), False, "distributed"),
        ("mixed", ("cdi-cri",), False, "distributed"),
    ],
)
def test_a_file_says_how_devices_reach_containers(
    settings: Watched, file: str, strategies: tuple[str, ...], shares: str, *, files: bool
) -> None:
    settings.node_changed(node(file))
    [(_, allocation)] = settings.applied
    assert (allocation.strategies, allocation.gives_files) == (strategies, files)
    assert allocation.shares == shares


def test_device_files_come_beside_the_plugin_s_own_strategy_where_that_is_not_cdi() -> None:
    own = AllocationSettings(device_list_strategy="volume-mounts")
    made = allocation(own, AppliedFields(ResourceSettings(), specs=True))
    assert (made.strategies, made.gives_files) == (("volume-mounts",), True)


def test_what_a_file_asks_of_nvidia_s_runtime_is_asked_of_it(settings: Watched) -> None:
    settings.node_changed(node("runtime"))
    [(_, made)] = settings.applied
    assert made.features == {"NVIDIA_GDRCOPY": "enabled", "NVIDIA_MOFED": "enabled"}
    assert settings.problems_found == []


def test_each_setting_that_changes_nothing_is_named_once(settings: Watched) -> None:
    settings.node_changed(node("silent"))
    settings.look()
    assert [line.partition(": has no effect")[0] for line in settings.problems_found] == [
        "silent: flags.plugin.passDeviceSpecs",
        "silent: flags.gdsEnabled",
        "silent: flags.plugin.cdiAnnotationPrefix",
    ]


def test_what_cannot_be_done_here_is_reported(settings: Watched) -> None:
    settings.node_changed(node("unheard"))
    [ids] = settings.problems_found
    assert ids.startswith("unheard: flags.plugin.deviceIDStrategy: index has no effect")


def test_xids_that_a_file_ignores_are_announced_when_they_change(
    settings: Watched, folder: Path
) -> None:
    announced: list[frozenset[int]] = []
    settings.ignored_xids.listen(announced.append)
    for label in ("mixed", "unheard", "unheard", "mixed"):
        settings.node_changed(node(label))
    assert announced == [{94}, frozenset()]
    (folder / "mixed").write_text("health: {ignoredXIDs: [79]}")
    settings.look()
    assert announced[2:] == [{79}]


async def test_nothing_is_guessed_before_the_node_is_known(settings: Watched) -> None:
    settings.look()
    assert settings.applied == []
    waiting = asyncio.create_task(settings.known())
    await asyncio.sleep(0)
    assert not waiting.done()
    settings.node_changed(node("mixed"))
    await waiting
    assert [r.mig_strategy for r, _ in settings.applied] == ["mixed"]
