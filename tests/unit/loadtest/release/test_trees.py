"""What packages and wheels become on disk, and what is refused."""

import re
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

from loadtest.release import base, debian, packages
from loadtest.testbed.controlplane.assets import AssetError


def a_wheel(path: Path, files: dict[str, str]) -> Path:
    with ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_a_wheels_parts_go_where_an_installer_puts_them(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg-1.data/purelib/more.py": "",
        "pkg-1.data/data/share/pkg/file.yaml": "",
        "pkg-1.data/scripts/tool": "",
    }
    root = tmp_path / "root"
    packages.lay_out([a_wheel(tmp_path / "pkg.whl", files)], root, "3.11")
    found = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    site = "opt/muster/lib/python3.11/site-packages"
    assert found == {f"{site}/pkg/__init__.py", f"{site}/more.py", "opt/muster/share/pkg/file.yaml"}


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../outside"])
def test_a_wheel_that_leads_out_of_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(AssetError, match="leads out of the wheel"):
        packages.lay_out([a_wheel(tmp_path / "pkg.whl", {name: ""})], tmp_path / "root", "3.11")


def test_the_environment_is_one_and_has_both_commands(tmp_path: Path) -> None:
    packages.add_command(tmp_path, "3.11")
    home = tmp_path / packages.HOME
    assert (home / "pyvenv.cfg").read_text().startswith("home = /usr/bin\n")
    assert (home / "bin" / "python").readlink() == Path("/usr/bin/python3.11")
    for name in ("muster", "kubectl-muster"):
        assert (home / "bin" / name).read_text().startswith("#!/opt/muster/bin/python\n")
        assert (home / "bin" / name).stat().st_mode & 0o111


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("./", ""),
        ("./lib/x86_64-linux-gnu/libc.so.6", "usr/lib/x86_64-linux-gnu/libc.so.6"),
        ("./lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2"),
        ("./etc/services", "etc/services"),
    ],
)
def test_a_package_is_laid_out_in_a_merged_usr(name: str, place: str) -> None:
    assert base._placed(name) == place


@pytest.mark.parametrize("name", ["../etc/passwd", "./usr/../../etc/passwd"])
def test_a_package_that_leads_out_of_the_image_is_refused(name: str) -> None:
    with pytest.raises(AssetError, match="leads out of the image"):
        base._placed(name)


def test_a_line_of_apt_names_the_package_its_version_and_its_checksum() -> None:
    digest = "a" * 64
    line = (
        "'http://mirror.example.com/pool/zlib1g_1.2.13_amd64.deb'"
        f" zlib1g_1%3a1.2.13.dfsg-1_amd64.deb 86684 SHA256:{digest}"
    )
    found = debian._LINE.match(line)
    assert isinstance(found, re.Match)
    package = debian.package(found)
    assert (package.name, package.version, package.sha256) == (
        "zlib1g",
        "1:1.2.13.dfsg-1",
        digest,
    )
    assert package.file == "zlib1g_1%3a1.2.13.dfsg-1_amd64.deb"


def test_no_root_of_the_image_is_left_out() -> None:
    assert not set(debian.ROOTS) & debian.LEFT_OUT


def test_packages_lie_where_the_dockerfile_has_them() -> None:
    text = (Path(__file__).parents[4] / "Dockerfile").read_text(encoding="utf-8")
    assert f"COPY --from=build /{packages.HOME} /{packages.HOME}" in text
    assert packages.site("3.12") == PurePosixPath("opt/muster/lib/python3.12/site-packages")
