"""What an image or `pip install .` gets: the product, and nothing that puts it under load."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[3]
OURS = {"deviceplugin", "extender", "muster", "webhook"}
NEEDED = (*OURS, "loadtest", "manifests", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """Build from a copy, load test included: a build leaves folders behind where it is done."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in NEEDED:
        here = ROOT / name
        if here.is_dir():
            shutil.copytree(here, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(here, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(built)]
    done = subprocess.run(
        [*command, str(source)], capture_output=True, text=True, cwd=built, check=False
    )
    assert done.returncode == 0, done.stderr
    (found,) = built.glob("*.whl")
    return ZipFile(found)


def test_no_top_level_name_is_installed_but_the_programs_and_their_library(wheel: ZipFile) -> None:
    tops = {PurePosixPath(name).parts[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith((".dist-info", ".data"))} == OURS


def test_every_data_file_of_the_packages_is_shipped_with_them(wheel: ZipFile) -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = listed["tool"]["setuptools"]["packages"]
    shipped = set(wheel.namelist())
    folders = [ROOT.joinpath(*package.split(".")) for package in packages]
    wanted = [
        file
        for folder in (*folders, *(inner for f in folders for inner in f.iterdir()))
        if folder.is_dir() and folder.name != "__pycache__"
        for file in folder.iterdir()
        if file.is_file() and file.suffix != ".pyc"
    ]
    assert {file.relative_to(ROOT).as_posix() for file in wanted} <= shipped


def test_nothing_in_it_needs_the_load_test_or_serves_a_route_for_it(wheel: ZipFile) -> None:
    for name in wheel.namelist():
        text = wheel.read(name).decode("utf-8", errors="replace")
        assert "/v1/echo" not in text, name
        assert "Server-Timing" not in text, name
        lines = [line.split() for line in text.splitlines()] if name.endswith(".py") else []
        loads = [line for line in lines if line[:1] in (["import"], ["from"]) and len(line) > 1]
        assert not [line for line in loads if line[1].partition(".")[0] in ("loadtest", "tests")]
    assert not [name for name in wheel.namelist() if "oracle" in name or "chaos" in name]
