"""The lowest layer of the image: packages of Debian without what only a person would use.

No script of a package runs. What such scripts would make and programs need is made here: the bundle
of certificate authorities, nsswitch.conf, the two users and the links of a merged /usr.
"""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from loadtest.testbed.controlplane.assets import AssetError

USER: Final = 65532
_MERGED: Final = ("bin", "lib", "lib64", "sbin")  # links into /usr since Debian 12
_LEFT_OUT: Final = re.compile(
    r"usr/share/(?!ca-certificates/|zoneinfo/|python3/|doc/[^/]+/copyright$)"
    r"|usr/lib/[^/]+/gconv/"
    r"|usr/sbin/"
    r"|usr/bin/(?!python3)"
    r"|usr/lib/valgrind/"
    r"|etc/(?!debian_version|os-release|protocols|services|ssl/|python3)"
)
_USERS: Final = "root:x:0:0:root:/root:\nnonroot:x:{user}:{user}:nonroot:/:\n"
_GROUP: Final = "root:x:0:\nnonroot:x:{user}:\n"
_NSSWITCH: Final = "passwd: files\ngroup: files\nhosts: files dns\n"


def lay_out(packages: Iterable[Path], root: Path) -> None:
    """Unpack .deb files into ``root``, a new directory, and add what programs need.

    Raises AssetError where a package cannot be read.
    """
    root.mkdir()
    for folder in _MERGED:
        (root / "usr" / folder).mkdir(parents=True)
        (root / folder).symlink_to(f"usr/{folder}")
    for package in packages:
        _unpack(package, root)
        _describe(package, root)
    for folder, mode in (("tmp", 0o1777), ("root", 0o700), ("proc", 0o755), ("sys", 0o755)):
        (root / folder).mkdir(exist_ok=True)
        (root / folder).chmod(mode)
    _authorities(root)
    for name, text in (("passwd", _USERS), ("group", _GROUP), ("nsswitch.conf", _NSSWITCH)):
        (root / "etc" / name).write_text(text.format(user=USER), encoding="ascii")


def python(root: Path) -> str:
    """Return the version of the base's Python as "3.11"."""
    found = [path.name for path in (root / "usr" / "bin").glob("python3.*")]
    versions = [
        name.removeprefix("python") for name in found if re.fullmatch(r"python3\.\d+", name)
    ]
    if len(versions) != 1:
        raise AssetError(f"{root}: one python3.N is expected in /usr/bin, there is {found}")
    return versions[0]


def glibc(root: Path) -> tuple[int, int]:
    """Return the version of the base's C library, which limits the wheels that it can load."""
    names = [entry.name for entry in (root / "var/lib/dpkg/status.d").iterdir()]
    if "libc6" not in names:
        raise AssetError(f"{root}: no libc6 among {', '.join(names)}")
    text = (root / "var/lib/dpkg/status.d/libc6").read_text(encoding="utf-8")
    found = re.search(r"^Version: (\d+)\.(\d+)", text, re.MULTILINE)
    if found is None:
        raise AssetError("libc6: its control file has no version")
    return int(found[1]), int(found[2])


def interpreter(root: Path) -> list[str]:
    """Return the command that runs the base's Python from outside, without a chroot."""
    (loader,) = (root / "usr/lib").glob("*/ld-linux-*.so.*")
    program = root / "usr" / "bin" / f"python{python(root)}"
    return [str(loader), "--library-path", str(loader.parent), str(program)]


def _unpack(package: Path, root: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(_deb("--fsys-tarfile", package))) as archive:
        for entry in archive:
            name = _placed(entry.name)
            if name and not _LEFT_OUT.match(name):
                _write(archive, entry, root, name)


def _placed(name: str) -> str:
    """Return the path of an entry in a merged /usr, "" for the root."""
    path = PurePosixPath(name.removeprefix("./"))
    if path.is_absolute() or ".." in path.parts:
        raise AssetError(f"{name}: leads out of the image")
    if path.parts[:1] and path.parts[0] in _MERGED:
        path = "usr" / path
    return "" if path == PurePosixPath() else str(path)


def _write(archive: tarfile.TarFile, entry: tarfile.TarInfo, root: Path, name: str) -> None:
    target = root / name
    if entry.isdir():
        target.mkdir(parents=True, exist_ok=True)
        target.chmod(entry.mode & 0o7777)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if entry.issym():
        target.unlink(missing_ok=True)
        target.symlink_to(entry.linkname)
    elif (content := archive.extractfile(entry)) is not None:  # a hard link is read as its file
        target.write_bytes(content.read())
        target.chmod(entry.mode & 0o777)  # nothing is setuid here


def _describe(package: Path, root: Path) -> None:
    """Keep the control file where scanners of images without dpkg look for it."""
    name = package.name.partition("_")[0]
    place = root / "var" / "lib" / "dpkg" / "status.d"
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_bytes(_deb("--field", package))


def _authorities(root: Path) -> None:
    """Make the one file of trusted authorities, as update-ca-certificates(8) does."""
    found = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    bundle = root / "etc" / "ssl" / "certs" / "ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_bytes(b"".join(path.read_bytes() for path in found))


def _deb(question: str, package: Path) -> bytes:
    done = subprocess.run(["dpkg-deb", question, package], capture_output=True, check=False)
    if done.returncode:
        raise AssetError(f"{package}: dpkg-deb cannot read it: {done.stderr.decode()}")
    return done.stdout
