"""Building what a real node runs, with a stand-in for the Go command."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support.machine.fakego import put_on_path

from loadtest.testbed.controlplane import assets, nodeassets

NO_COMPILER = "none-such-compiler"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUSTER_ASSETS_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("CC", "sh")  # any program: the stand-in compiles nothing
    return tmp_path / "cache"


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    return partial(put_on_path, tmp_path, monkeypatch)


@pytest.fixture
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on PATH, with what the stand-in needs and no more."""
    folder = tmp_path / "bare"
    folder.mkdir()
    chmod = shutil.which("chmod")
    assert chmod is not None
    (folder / "chmod").symlink_to(chmod)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("CC", NO_COMPILER)
    return folder


def test_the_kubelet_is_each_minors_own_and_everything_else_is_shared(go: Callable) -> None:
    calls = go()
    assert nodeassets.find() is None
    older, newer = (nodeassets.ensure(minor=minor) for minor in assets.MINORS)
    assert older == replace(newer, kubelet=older.kubelet)
    assert older.kubelet != newer.kubelet
    assert nodeassets.find("1.36") == newer
    assert nodeassets.ensure(minor="1.36") == newer
    assert calls.read_text().count("build") == 6


def test_containerd_finds_its_shim_and_the_plugins_each_other(go: Callable) -> None:
    go()
    built = nodeassets.ensure()
    assert {"containerd-shim-runc-v2", "ctr"} <= {p.name for p in built.containerd.parent.iterdir()}
    assert {p.name for p in built.cni.iterdir()} == {"bridge", "host-local", "loopback"}


def test_a_go_that_lacks_a_patch_is_passed_over_where_a_module_asks_for_it(
    go: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nodeassets.CONTAINERD.needed_go == (1, 26, 6)
    on_path = go(version="1.26.5")
    said: list[str] = []

    def install(_venv: Path, out: Path) -> None:
        (out / "go" / "bin").mkdir(parents=True)
        shutil.copy(on_path.parent / "bin" / "go", out / "go" / "bin" / "go")

    monkeypatch.setattr(assets, "_install_toolchain", install)
    assets.ensure_one(nodeassets.CNI, said.append)  # asks for less
    assert not any("wheel" in line for line in said)
    assets.ensure_one(nodeassets.CONTAINERD, said.append)
    assert any("wheel" in line for line in said)


def test_only_runc_is_built_with_c(go: Callable) -> None:
    calls = go()
    nodeassets.ensure()
    assert sorted(calls.read_text().split("\n")) == ["", *["build cgo=0"] * 4, "build cgo=1"]


def test_without_a_compiler_the_machines_own_runc_will_do(go: Callable, bare_path: Path) -> None:
    go()
    shutil.copy(bare_path / "chmod", bare_path / "runc")
    assert nodeassets.why_no_runc() == ""
    assert nodeassets.ensure().runc == bare_path / "runc"


def test_without_compiler_and_runc_it_is_said_what_to_install(
    go: Callable, bare_path: Path
) -> None:
    calls = go()
    assert [path.name for path in bare_path.iterdir()] == ["chmod"]
    with pytest.raises(assets.AssetError, match=r"install gcc with a static libc .* or runc"):
        nodeassets.ensure()
    assert not calls.exists()
    assert nodeassets.find() is None


def test_a_runc_that_is_built_needs_no_compiler_any_more(
    go: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    go()
    built = nodeassets.ensure()
    monkeypatch.setenv("CC", NO_COMPILER)
    assert nodeassets.ensure() == built


@pytest.mark.parametrize("recipe", nodeassets.RECIPES, ids=lambda recipe: recipe.folder)
def test_every_module_is_pinned_by_hash_or_needs_no_other(recipe: assets.Recipe) -> None:
    module = (recipe.module / "go.mod").read_text()
    if recipe.sources:
        assert "require" not in module
        assert sorted(f"{p.parent.name}/{p.name}" for p in recipe.module.glob("*/*")) == sorted(
            recipe.sources
        )
    else:
        assert f" v{recipe.version}" in module
        assert " h1:" in (recipe.module / "go.sum").read_text()


def test_a_changed_program_of_ours_never_meets_an_old_binary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(nodeassets.OURS.module, tmp_path / "node")
    before = nodeassets.OURS.key
    monkeypatch.setattr(assets, "MODULES", tmp_path)
    assert nodeassets.OURS.key == before
    with (tmp_path / "node" / "witness" / "main.go").open("a") as source:
        source.write("// another line\n")
    assert nodeassets.OURS.key != before


@pytest.mark.parametrize("change", [{"tags": ("seccomp",)}, {"cgo": False}])
def test_a_changed_flag_never_meets_an_old_binary(change: dict[str, object]) -> None:
    assert replace(nodeassets.RUNC, **change).key != nodeassets.RUNC.key


def test_the_two_kubelets_are_of_the_control_planes_versions() -> None:
    for minor in assets.MINORS:
        kubelet, plane = nodeassets.KUBELET[minor], assets.KUBERNETES[minor]
        assert kubelet.version == plane.version
        assert kubelet.variables == plane.variables
