"""What a real node runs, built as the control plane is (controlplane.assets): kubelet to container.

    kubelet ──CRI──► containerd ──► containerd-shim-runc-v2 ──► runc-unfiltered (ours) ──► runc
                        └── CNI ──► bridge, host-local, loopback            witness (ours) ◄──┘

The kubelet of each minor has a module folder of its own beside that of the control plane: one more
package there would change its key and have everybody build the control plane anew. runc needs a C
compiler; where there is none, a runc on PATH will do.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from loadtest.testbed.controlplane.assets import (
    DEFAULT_MINOR,
    KUBERNETES,
    AssetError,
    Minor,
    Progress,
    Recipe,
    ensure_one,
    kubernetes,
    present,
)

_CONTAINERD_PACKAGE: Final = "github.com/containerd/containerd/v2/cmd"
_CONTAINERD_PROGRAMS: Final = ("containerd", "containerd-shim-runc-v2", "ctr")
_CNI_PACKAGE: Final = "github.com/containernetworking/plugins/plugins"

KUBELET: Final[Mapping[Minor, Recipe]] = MappingProxyType(
    {
        minor: kubernetes("kubelet", recipe.version, ("kubelet",))
        for minor, recipe in KUBERNETES.items()
    }
)
CONTAINERD: Final = Recipe(
    name="containerd",
    folder="containerd",
    version="2.4.2",
    packages=tuple(f"{_CONTAINERD_PACKAGE}/{program}" for program in _CONTAINERD_PROGRAMS),
    binaries=_CONTAINERD_PROGRAMS,
    tags=("no_btrfs",),  # the one snapshotter that needs C headers
)
CNI: Final = Recipe(
    name="cniplugins",
    folder="cniplugins",
    version="1.9.1",
    packages=tuple(
        f"{_CNI_PACKAGE}/{p}" for p in ("ipam/host-local", "main/bridge", "main/loopback")
    ),
    binaries=("host-local", "bridge", "loopback"),
)
RUNC: Final = Recipe(
    name="runc",
    folder="runc",
    version="1.5.2",  # what containerd 2.4.2 is tested with (its script/setup/runc-version)
    packages=("github.com/opencontainers/runc",),
    binaries=("runc",),
    tags=("netgo", "osusergo"),  # no resolver of libc: its static form is not self-contained
    cgo=True,  # the joining of namespaces is C; without the tag seccomp no other library is needed
)
_OURS: Final = ("witness", "runc-unfiltered")  # their sources say what they do
OURS: Final = Recipe(
    name="node",
    folder="node",
    version="1",
    packages=tuple(f"./{program}" for program in _OURS),
    binaries=_OURS,
    sources=tuple(f"{program}/main.go" for program in _OURS),
)
RECIPES: Final = (*KUBELET.values(), CONTAINERD, CNI, RUNC, OURS)


@dataclass(frozen=True, slots=True)
class NodeAssets:
    """Where the programs of one node lie."""

    kubelet: Path
    containerd: Path  # its shim and ctr lie beside it
    cni: Path  # the directory of the CNI plugins
    runc: Path
    runc_unfiltered: Path  # what containerd is to call, with `runc` on PATH
    witness: Path  # the only program in the nodes' images


def find(minor: Minor = DEFAULT_MINOR) -> NodeAssets | None:
    """Return the programs as they lie, or None when at least one must be built first."""
    recipes = (KUBELET[minor], CONTAINERD, CNI, OURS)
    runc = present(RUNC).get("runc") or _runc_on_path()
    if runc is None or any(len(present(recipe)) < len(recipe.binaries) for recipe in recipes):
        return None
    return _node_assets(minor, runc)


def ensure(progress: Progress = lambda _line: None, minor: Minor = DEFAULT_MINOR) -> NodeAssets:
    """Find the programs, building what is missing; safe to call from several processes at once.

    Raises AssetError when something cannot be built: see
    loadtest.testbed.controlplane.assets.ensure; for runc, when there is neither a C compiler nor a
    runc on PATH.
    """
    runc = _ensure_runc(progress)
    for recipe in (KUBELET[minor], CONTAINERD, CNI, OURS):
        ensure_one(recipe, progress)
    return _node_assets(minor, runc)


def _node_assets(minor: Minor, runc: Path) -> NodeAssets:
    return NodeAssets(
        kubelet=present(KUBELET[minor])["kubelet"],
        containerd=present(CONTAINERD)["containerd"],
        cni=present(CNI)["bridge"].parent,
        runc=runc,
        runc_unfiltered=present(OURS)["runc-unfiltered"],
        witness=present(OURS)["witness"],
    )


def why_no_runc() -> str:
    """Return why this machine can have no runc, and so no real node; "" where it can."""
    if present(RUNC) or _compiles() or _runc_on_path() is not None:
        return ""
    return (
        f"runc {RUNC.version} cannot be built without a C compiler, and PATH has neither one nor a"
        " runc: install gcc with a static libc (Debian: gcc libc6-dev), or runc"
    )


def _ensure_runc(progress: Progress) -> Path:
    """Build runc, the version that fits; what the machine has only where that is not possible."""
    if present(RUNC) or _compiles():
        return ensure_one(RUNC, progress)["runc"]
    if (found := _runc_on_path()) is not None:
        return found
    raise AssetError(why_no_runc())


def _compiles() -> bool:
    return shutil.which(os.environ.get("CC", "gcc")) is not None  # as cgo chooses


def _runc_on_path() -> Path | None:
    found = shutil.which("runc")
    return None if found is None else Path(found)
