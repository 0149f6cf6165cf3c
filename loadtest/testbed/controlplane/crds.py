"""The CustomResourceDefinitions of the dialects, out of their projects' published Go modules.

    the cache has them? ── yes ──► use them
            │ no
    take the cache's lock ──► `go mod download` each module ──► its hash is the pinned one?
            │                                                        │ no: AssetError
            └──► the CRDs, as JSON, into a scratch directory ──► rename into the cache

Nothing is compiled and nothing is committed: the committed go.sum pins every module by hash,
and the cache's directory is named after it and after the list below. Lock and cache are those
of `loadtest.testbed.controlplane.assets`. They are stored as JSON, which tests read a hundred times
faster.

Not to be had this way is KAI, whose module the proxy does not serve: tests define a kind
without a schema in its place (tests/support/dialects/customkinds.py). The Spark operator's module
is not served either, but Koordinator ships that CRD among its examples.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from loadtest.testbed.client.api import JSON
from loadtest.testbed.controlplane.assets import (
    MODULES,
    AssetError,
    Progress,
    cache_directory,
    locked,
    run,
    toolchain,
)

PINNED: Final = MODULES / "crds" / "go.sum"
_LAYOUT: Final = "MODULE/NAME.json"  # of the cache's directory; part of its name
_GO: Final = (1, 21)  # any Go that knows `mod download -json` and toolchain lines in go.mod


@dataclass(frozen=True, slots=True)
class Source:
    """A Go module and the files in it that hold CRDs; the version stands in go.sum."""

    module: str
    files: tuple[str, ...]  # glob patterns below the module's root


SOURCES: Final = (
    Source("sigs.k8s.io/jobset", ("config/components/crd/bases/*.yaml",)),
    Source("sigs.k8s.io/lws", ("config/crd/bases/*.yaml",)),
    Source("sigs.k8s.io/kueue", ("config/components/crd/bases/*.yaml",)),
    Source("sigs.k8s.io/scheduler-plugins", ("config/crd/bases/*.yaml",)),
    Source(
        "github.com/koordinator-sh/koordinator",
        (
            "config/crd/bases/scheduling.*.yaml",
            "examples/spark-operator-chart/crds/*_sparkapplications.yaml",
        ),
    ),
    Source("volcano.sh/volcano", ("config/crd/volcano/bases/*.yaml",)),
    Source("github.com/kubeflow/training-operator", ("manifests/base/crds/kubeflow.org_*.yaml",)),
    Source("github.com/kubeflow/mpi-operator", ("manifests/base/kubeflow.org_mpijobs.yaml",)),
    Source("github.com/kubeflow/trainer/v2", ("manifests/base/crds/trainer.*.yaml",)),
    Source("github.com/ray-project/kuberay/ray-operator", ("config/crd/bases/*.yaml",)),
    Source(
        "github.com/argoproj/argo-workflows/v3",
        ("manifests/base/crds/minimal/argoproj.io_workflows.yaml",),
    ),
    Source("github.com/project-codeflare/appwrapper", ("config/crd/bases/*.yaml",)),
)


def find() -> Path | None:
    """Return the directory of the CRDs (MODULE/NAME.json), or None when it must be made."""
    directory = cache_directory() / _key()
    return directory if directory.is_dir() else None


def ensure(progress: Progress = lambda _line: None) -> Path:
    """Return the directory of the CRDs, fetching the modules first where it is not there.

    Raises AssetError when a module cannot be fetched, is not the pinned one, or holds no CRD
    where one is expected.
    """
    if find() is None:
        with locked(cache_directory(), progress):
            _make(progress)
    return cache_directory() / _key()


def _key() -> str:
    digest = hashlib.sha256(PINNED.read_bytes() + repr((_LAYOUT, SOURCES)).encode())
    return f"crds-{digest.hexdigest()[:12]}"


def _make(progress: Progress) -> None:
    if find() is not None:
        return  # somebody made it while we waited for the lock
    go, pinned = toolchain(_GO, progress), dict(_pinned())
    with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="building-") as scratch:
        out = Path(scratch) / "crds"
        for source in SOURCES:
            version, wanted = pinned[source.module]
            progress(f"fetching the CRDs of {source.module} {version}")
            _copy(source, fetch(go, source.module, version, wanted, PINNED), out)
        out.rename(cache_directory() / _key())


def _pinned() -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield (module, (version, hash)) of every line of go.sum."""
    for line in PINNED.read_text(encoding="utf-8").splitlines():
        module, version, checksum = line.split()
        yield module, (version, checksum)


def fetch(go: Path, module: str, version: str, wanted: str, pin: Path) -> Path:
    """Return where Go's module cache holds the module, once its hash is known to be ``wanted``.

    Raises AssetError for another hash. ``pin``: the file that says the wanted one.
    """
    environment = os.environ | {
        "GOFLAGS": "",
        "GOSUMDB": "off",  # the hash is compared here, with the committed one
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    command = [str(go), "mod", "download", "-json", f"{module}@{version}"]
    what = f"fetching {module} {version}"
    # Outside of any module, because a go.mod would have an influence.
    with tempfile.TemporaryDirectory() as outside:
        said = run(command, cwd=Path(outside), env=environment, what=what)
    reply = json.loads(said[said.find("{") :])  # what it tells of its progress comes before
    if reply["Sum"] != wanted:
        raise AssetError(f"{what}: its hash is {reply['Sum']}, {pin} says {wanted}")
    return Path(reply["Dir"])


def _copy(source: Source, root: Path, out: Path) -> None:
    target = out / source.module.replace("/", "_")
    target.mkdir(parents=True)
    for pattern in source.files:
        found = [crd for file in sorted(root.glob(pattern)) for crd in _definitions(file)]
        if not found:
            raise AssetError(f"{source.module}: no CustomResourceDefinition in {pattern}")
        for crd in found:
            name = crd["metadata"]["name"]
            (target / f"{name}.json").write_text(json.dumps(crd), encoding="utf-8")


def _definitions(file: Path) -> Iterator[JSON]:
    """Yield the CRDs of a YAML file; others (kustomization.yaml) lie beside them."""
    for doc in yaml.safe_load_all(file.read_bytes()):
        if doc and doc.get("kind") == "CustomResourceDefinition":
            yield doc
