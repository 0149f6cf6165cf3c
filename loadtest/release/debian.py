"""The packages of Debian in the image's base: which they are, and how they come here.

apt itself resolves what the roots need, against a system on which nothing is installed, so versions
and checksums are those of the machine's signed lists. Where the machine has no lists, they are
fetched into a directory of our own: root is not needed, and nothing of the machine changes.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from loadtest.testbed.controlplane.assets import AssetError, Progress, run

ROOTS: Final = (
    "base-files",  # the root's directories and os-release, which scanners read
    "ca-certificates",
    "libpython3-stdlib",
    "libstdc++6",  # what wheels for manylinux may expect of a system
    "netbase",  # names of protocols and services
    "python3-minimal",
    "tzdata",
)
# Needed by scripts of installation alone, which never run here. No shell and no package manager.
LEFT_OUT: Final = frozenset(
    {
        "bash",
        "coreutils",
        "dash",
        "debconf",
        "debianutils",
        "dpkg",
        "libacl1",
        "libmd0",
        "libpcre2-8-0",
        "libselinux1",
        "mawk",
        "openssl",
        "openssl-provider-legacy",
        "perl-base",
        "readline-common",
        "sed",
        "tar",
    }
)
_LINE: Final = re.compile(r"^'(?P<uri>[^']+)' (?P<file>\S+) (?P<size>\d+) SHA256:(?P<sha256>\S+)")
_DISTRIBUTION: Final = ("ID", "VERSION_ID")  # of os-release(5)


@dataclass(frozen=True, slots=True)
class Package:
    """One package as apt would install it."""

    name: str
    version: str
    architecture: str
    sha256: str  # of the .deb

    @property
    def file(self) -> str:
        """How apt calls the downloaded file: the colon of an epoch is quoted."""
        version = self.version.replace(":", "%3a")
        return f"{self.name}_{version}_{self.architecture}.deb"


def why_not() -> str:
    """Return why no base can be made on this machine, "" where it can."""
    if missing := [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]:
        return f"an image's base is made of Debian's packages: this machine has no {missing[0]}"
    return ""


def distribution() -> str:
    """Return the distribution whose packages apt finds here, as "debian-12"."""
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    said = dict(line.replace('"', "").split("=", 1) for line in lines if "=" in line)
    return "-".join(said.get(name, "unknown") for name in _DISTRIBUTION)


@dataclass(frozen=True, slots=True)
class Apt:
    """apt's own client; ``private`` has it keep its lists there and leave the machine's alone."""

    private: Path | None = None

    def command(self, verb: str, *words: str) -> list[str]:
        """Return a command of apt-get that changes nothing of the machine."""
        options = ["-qq", "-o", "APT::Sandbox::User=root", "-o", "Dir::State::status=/dev/null"]
        options += ["-o", "Acquire::ForceHash=sha256"]  # else --print-uris prints MD5
        if self.private is not None:
            options += ["-o", f"Dir::State={self.private}/state"]
            options += ["-o", f"Dir::Cache={self.private}/cache"]
        return ["apt-get", *options, verb, *words]

    def resolve(self) -> list[Package]:
        """Return what the image gets, by name; AssetError where the lists lack something."""
        words = ("--yes", "--no-install-recommends", "--print-uris", *ROOTS)
        said = run(self.command("install", *words), what="resolving Debian's packages")
        found = [package(match) for match in map(_LINE.match, said.splitlines()) if match]
        if missing := sorted(set(ROOTS) - {one.name for one in found}):
            raise AssetError(f"apt prints no address of {', '.join(missing)}:\n{said}")
        return sorted((one for one in found if one.name not in LEFT_OUT), key=lambda one: one.name)

    def download(self, packages: list[Package], directory: Path) -> list[Path]:
        """Download packages into a directory; AssetError where one is not what the lists say."""
        words = [f"{one.name}={one.version}" for one in packages]
        run(self.command("download", *words), what="downloading packages", cwd=directory)
        for one in packages:
            digest = hashlib.sha256((directory / one.file).read_bytes()).hexdigest()
            if digest != one.sha256:
                raise AssetError(
                    f"{one.file}: its SHA-256 is {digest}, apt's lists say {one.sha256}"
                )
        return [directory / one.file for one in packages]


def package(found: re.Match[str]) -> Package:
    """Return the package of one line of `apt-get --print-uris`."""
    stem = found["file"].removesuffix(".deb")
    name, version, architecture = stem.split("_")
    return Package(name, unquote(version), architecture, found["sha256"])


def apt(private: Path, progress: Progress) -> tuple[Apt, list[Package]]:
    """Return apt with lists that have all packages, fetched if need be, and the packages."""
    if reason := why_not():
        raise AssetError(reason)
    try:
        machine = Apt()
        return machine, machine.resolve()
    except AssetError:
        progress("the machine's lists of packages lack something: fetching lists of our own")
    for part in ("state/lists/partial", "cache/archives/partial"):
        (private / part).mkdir(parents=True, exist_ok=True)
    own = Apt(private)
    run(own.command("update"), what="fetching lists of packages")
    return own, own.resolve()
