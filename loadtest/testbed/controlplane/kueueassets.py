"""Kueue's own performance runner and its manager without webhooks, built from Kueue's Go module.

    `go mod download` ──► its hash is the pinned one? ──► a writable copy ──► go build ──► the cache
                                                             └── raisedkueue/main.go, see below

**Programs.** ``runner`` and ``minimalkueue`` stand in test/performance/scheduler of the module, and
its own go.mod and go.sum pin what they import: there is no folder of ours in gomodules/.
``minimalkueue`` asks the API server for 50 things a second; the number is compiled in, and no
flag changes it. ``raisedkueue`` is the same main with ``QPS`` in both numbers, written at build
time from the module's; AssetError where the lines that are replaced are not there exactly once.

**Beside them** lies ``configs/NAME/generator.yaml`` of the runner. The CRDs of the same version
(config/components/crd/bases) are to be had without a build.

None of this is part of `make assets`: `muster bench kueue-runner` builds it when it is needed, in
90 s on two cores once the modules are downloaded.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadtest.testbed.controlplane.assets import (
    AssetError,
    Progress,
    cache_directory,
    locked,
    run,
    toolchain,
)
from loadtest.testbed.controlplane.crds import fetch

MODULE: Final = "sigs.k8s.io/kueue"
VERSION: Final = "v0.19.2"
SUM: Final = "h1:mPNzr37u0nwI7ikST5QQl5gg6EgtYOAvC9ZbTgywdN8="
_PIN: Final = Path(__file__)  # where SUM stands
QPS: Final = 1000  # of raisedkueue, and of the runner: as hack/make/test.mk has it for the runner
_GO: Final = (1, 26, 0)  # of the module's go.mod
_PERFORMANCE: Final = Path("test/performance/scheduler")
_CRDS: Final = Path("config/components/crd/bases")
_PROGRAMS: Final = ("runner", "minimalkueue", "raisedkueue")
_RAISED: Final = (
    ("kubeConfig.QPS = 50\n", f"kubeConfig.QPS = {QPS}\n"),
    ("kubeConfig.Burst = 100\n", f"kubeConfig.Burst = {QPS}\n"),
)


@dataclass(frozen=True, slots=True)
class KueueAssets:
    """Where Kueue's programs and files lie."""

    home: Path

    @property
    def runner(self) -> Path:
        """The performance runner."""
        return self.home / "runner"

    @property
    def manager(self) -> Path:
        """Kueue's manager without webhooks, with ``QPS`` requests a second."""
        return self.home / "raisedkueue"

    def generator(self, config: str) -> Path:
        """Return what the runner generates; AssetError for a configuration that it does not have.

        ``config``: baseline, large-scale or tas.
        """
        path = self.home / "configs" / config / "generator.yaml"
        if not path.exists():
            known = ", ".join(sorted(each.name for each in (self.home / "configs").iterdir()))
            raise AssetError(f"no configuration {config!r} in {MODULE} {VERSION}; it has {known}")
        return path


def ensure(progress: Progress = lambda _line: None) -> KueueAssets:
    """Return the programs, built if need be; raises AssetError as ``assets.ensure`` does."""
    home = cache_directory() / _key()
    if not home.is_dir():
        with locked(cache_directory(), progress):
            if not home.is_dir():
                _make(home, progress)
    return KueueAssets(home)


def ensure_crds(progress: Progress = lambda _line: None) -> Path:
    """Return a directory with the CRDs as YAML files; raises AssetError as ``crds.ensure`` does."""
    home = cache_directory() / f"kueue-crds-{VERSION}"
    if not home.is_dir():
        with locked(cache_directory(), progress):
            if not home.is_dir():
                module = fetch(toolchain(_GO, progress), MODULE, VERSION, SUM, _PIN)
                with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
                    out = Path(scratch) / "crds"
                    shutil.copytree(module / _CRDS, out, copy_function=shutil.copyfile)
                    out.chmod(0o755)
                    out.rename(home)
    return home


def _key() -> str:
    machine = f"{sys.platform}-{platform.machine()}".lower()
    digest = hashlib.sha256(repr((SUM, _RAISED, _PROGRAMS)).encode())
    return f"kueue-{VERSION}-{machine}-{digest.hexdigest()[:12]}"


def _make(home: Path, progress: Progress) -> None:
    go, started = toolchain(_GO, progress), time.monotonic()
    progress(f"building {MODULE} {VERSION}: {', '.join(_PROGRAMS)}")
    module = fetch(go, MODULE, VERSION, SUM, _PIN)
    with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="building-") as scratch:
        source, out = Path(scratch) / "source", Path(scratch) / "out"
        # The module cache is read-only, file by file: so are copies that keep the modes.
        shutil.copytree(module, source, copy_function=shutil.copyfile)
        for folder in (source, *(each for each in source.rglob("*") if each.is_dir())):
            folder.chmod(0o755)
        _write_raised(source / _PERFORMANCE)
        out.mkdir()
        _go_build(go, source, out)
        shutil.copytree(source / _PERFORMANCE / "configs", out / "configs")
        out.rename(home)
    progress(f"built {MODULE} {VERSION} in {time.monotonic() - started:.0f} s")


def _write_raised(performance: Path) -> None:
    """Write the main of ``raisedkueue`` beside that of ``minimalkueue``."""
    text = (performance / "minimalkueue" / "main.go").read_text(encoding="utf-8")
    for old, new in _RAISED:
        if text.count(old) != 1:
            raise AssetError(f"{MODULE} {VERSION}: minimalkueue/main.go lacks {old.strip()!r}")
        text = text.replace(old, new)
    target = performance / "raisedkueue"
    target.mkdir()
    (target / "main.go").write_text(text, encoding="utf-8")


def _go_build(go: Path, source: Path, out: Path) -> None:
    environment = os.environ | {
        "CGO_ENABLED": "0",
        "GOFLAGS": "",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    packages = [f"./{_PERFORMANCE}/{program}" for program in _PROGRAMS]
    flags = ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", f"{out}/"]
    run([str(go), "build", *flags, *packages], cwd=source, env=environment, what="building kueue")
