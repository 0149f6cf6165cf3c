"""A real control plane on loopback: etcd, kube-apiserver, kube-scheduler, chosen controllers.

    async with ControlPlane() as plane:              # etcd and kube-apiserver, ready in about 3 s
        await plane.start_scheduler(config)          # a KubeSchedulerConfiguration, see below
        await plane.start_controllers("job", "garbage-collector-controller")
        plane.kill("kube-apiserver"); await plane.start("kube-apiserver")

Everything lies in one temporary directory; ports are free ones; nothing outlives the block. No
kubelet runs here: nodes are objects (loadtest.testbed.client.nodes) and pods stay Pending after
they are bound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import aiohttp
import yaml

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.controlplane import credentials
from loadtest.testbed.controlplane.assets import DEFAULT_MINOR, Assets, Minor, ensure
from loadtest.testbed.controlplane.parts import Parts
from loadtest.testbed.controlplane.programs import READY_TIMEOUT_S, Program, free_port

ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"
SCHEDULER: Final = "kube-scheduler"
CONTROLLERS: Final = "kube-controller-manager"

# Equal on every side of every comparison; without them the API server throttles the driver first.
_UNTHROTTLED: Final = (
    "--max-requests-inflight=3000",
    "--max-mutating-requests-inflight=1500",
    "--enable-priority-and-fairness=false",
    # Of 100, the default, kube-scheduler's bindings and Events overflow: net/http opens a further
    # connection for whoever waits then, a TLS handshake each (docs/adr/0044).
    "--http2-max-streams-per-connection=1000",
)
# Only the log shows a watch that is closed because its reader is late, and a list read again.
_LOG_WATCHES: Final = "--vmodule=cache_watcher=1,reflector=4"
# TaintNodesByCondition would taint every new node not-ready and no kubelet is there to clear it.
_NO_ADMISSION: Final = "--disable-admission-plugins=TaintNodesByCondition"
# Would refuse pods until a controller has made the namespace's account.
_NO_ACCOUNTS: Final = ",ServiceAccount"
_QUOTA_BYTES: Final = 8 * 1024**3  # etcd's largest advised; 130,000 nodes need more than its 2 GiB


@dataclass(frozen=True, slots=True)
class Options:
    """What differs between control planes; the defaults suit tests and benches."""

    minor: Minor = DEFAULT_MINOR
    api_server_flags: tuple[str, ...] = ()
    feature_gates: tuple[str, ...] = ()  # "Name=true", given to every Kubernetes program
    runtime_config: tuple[str, ...] = ()
    bind_address: str = (
        "127.0.0.1"  # of the API server; 0.0.0.0 for nodes with networks of their own
    )
    # Pods get tokens of their ServiceAccounts: needs the controllers that make accounts and publish
    # the authority.
    service_accounts: bool = False
    rbac: Path | None = None  # a YAML file of RBAC objects, applied when the API server is ready


def native_gangs(minor: Minor, *, rbac: Path | None = None) -> Options:
    """Return options that switch on Kubernetes' own gangs, alpha and off by default in both minors.

    1.35: `Workload` objects of v1alpha1 and `spec.workloadRef` of pods; 1.36: `PodGroup` and
    `Workload` of v1alpha2 and `spec.schedulingGroup` (pkg/features/kube_features.go,
    staging/src/k8s.io/api/scheduling of each). kube-scheduler then runs its gang plugin, too.
    """
    version = {"1.35": "v1alpha1", "1.36": "v1alpha2"}[minor]
    return Options(
        minor=minor,
        feature_gates=("GenericWorkload=true", "GangScheduling=true"),
        runtime_config=(f"scheduling.k8s.io/{version}=true",),
        rbac=rbac,
    )


class ControlPlane(Parts):
    """The programs, their addresses and their credentials; a (async) context manager."""

    def __init__(self, options: Options | None = None, *, assets: Assets | None = None) -> None:
        """Nothing starts yet. `assets` defaults to what `make assets` built of that minor."""
        super().__init__("muster-control-plane-")
        self._options = options or Options()
        self._assets = assets

    # -- life ------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Start without a running event loop (scripts, synchronous fixtures)."""
        return asyncio.run(self.__aenter__())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run(self.close())

    async def _take_down(self) -> None:
        for name in (CONTROLLERS, SCHEDULER):
            await self.stop(name)
        # Their state is thrown away: no reason to wait for a graceful shutdown.
        for name in (API_SERVER, ETCD):
            self.kill(name)

    async def _bring_up(self) -> None:
        if self._assets is None:
            self._assets = await asyncio.to_thread(ensure, minor=self._options.minor)
        assets = self._assets
        self.credentials = credentials.create(self.directory)
        etcd_url = self._add_etcd(assets)
        self._add_api_server(assets, etcd_url)
        await self.start(ETCD)
        await self.start(API_SERVER)
        if self._options.rbac is not None:
            await self.apply(self._options.rbac)

    # -- what callers need -----------------------------------------------------------------------

    @property
    def minor(self) -> Minor:
        """The minor of Kubernetes that it is."""
        return self._options.minor

    def api(self, user: str = "observer", *, limit: int = 64) -> Api:
        """Return a plain client; enter it with `async with`."""
        token = self.credentials.tokens[user]
        return Api(self.url, token=token, ca=self.credentials.ca, limit=limit)

    async def apply(self, manifest: Path) -> None:
        """Create the cluster-scoped and namespaced objects of a YAML file; existing ones stay."""
        async with self.api() as api:
            for obj in yaml.safe_load_all(await asyncio.to_thread(manifest.read_text)):
                if obj is not None:
                    await api.ensure(collection(obj), obj)

    async def start_scheduler(self, config: Path, *, ready_s: float = READY_TIMEOUT_S) -> None:
        """Start kube-scheduler with a KubeSchedulerConfiguration file; an older one is stopped.

        The file's clientConnection.kubeconfig must be one of ours: see `kubeconfig`. It has
        listed all nodes when it is ready.
        """
        await self.stop(SCHEDULER)
        port = free_port()
        command = [f"--config={config}", *self._kubernetes_flags(port)]
        self._add(SCHEDULER, [self._ready_assets.kube_scheduler, *command], self._https(port))
        await self.start(SCHEDULER, ready_s=ready_s)

    async def start_controllers(self, *names: str) -> None:
        """Start kube-controller-manager with just these controllers; an older one is stopped."""
        await self.stop(CONTROLLERS)
        port = free_port()
        command: list[str | Path] = [
            self._ready_assets.kube_controller_manager,
            f"--controllers={','.join(names)}",
            f"--kubeconfig={self.kubeconfig(CONTROLLERS)}",
            "--leader-elect=false",
            "--use-service-account-credentials=false",
            f"--service-account-private-key-file={self.credentials.service_account_key}",
            f"--root-ca-file={self.credentials.ca}",
            "--kube-api-qps=5000",
            "--kube-api-burst=5000",
            *self._kubernetes_flags(port),
        ]
        self._add(CONTROLLERS, command, self._https(port, "/healthz"))
        await self.start(CONTROLLERS)

    # -- single parts, for fault tests ------------------------------------------------------------

    async def start(self, name: str, *, ready_s: float = READY_TIMEOUT_S) -> None:
        """Start a part with its old command line and wait until it is ready."""
        program = self.program(name)
        program.start()
        await program.wait_ready(ready_s)

    # -- command lines ---------------------------------------------------------------------------

    @property
    def _ready_assets(self) -> Assets:
        if self._assets is None:
            raise RuntimeError("the control plane is not running: enter it as a context manager")
        return self._assets

    def _add(
        self, name: str, command: list[str | Path], ready: Callable[[], Awaitable[bool]]
    ) -> None:
        self._programs[name] = Program(name, command, directory=self.directory, ready=ready)

    def _add_etcd(self, assets: Assets) -> str:
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        command: list[str | Path] = [
            assets.etcd,
            "--name=loadtest",
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=loadtest={peer}",
            f"--quota-backend-bytes={_QUOTA_BYTES}",
            "--unsafe-no-fsync",  # the disk of a test machine must not decide a comparison
            "--log-level=warn",
        ]
        self._add(ETCD, command, lambda: _answers(f"{client}/readyz", None))
        return client

    def _add_api_server(self, assets: Assets, etcd_url: str) -> None:
        port = free_port()
        self.url = f"https://127.0.0.1:{port}"
        made = self.credentials
        command: list[str | Path] = [
            assets.kube_apiserver,
            f"--etcd-servers={etcd_url}",
            f"--token-auth-file={made.token_file}",
            f"--service-account-key-file={made.service_account_key}",
            f"--service-account-signing-key-file={made.service_account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            "--profiling=false",
            _NO_ADMISSION + ("" if self._options.service_accounts else _NO_ACCOUNTS),
            f"--admission-control-config-file={made.admission}",
            *_UNTHROTTLED,
            *self._options.api_server_flags,
            *self._kubernetes_flags(port, self._options.bind_address),
        ]
        if self._options.runtime_config:
            command.append(f"--runtime-config={','.join(self._options.runtime_config)}")
        self._add(API_SERVER, command, self._api_server_ready)

    def _kubernetes_flags(self, port: int, address: str = "127.0.0.1") -> list[str]:
        flags = [
            f"--bind-address={address}",
            f"--secure-port={port}",
            f"--tls-cert-file={self.credentials.certificate}",
            f"--tls-private-key-file={self.credentials.key}",
            _LOG_WATCHES,
        ]
        if self._options.feature_gates:
            flags.append(f"--feature-gates={','.join(self._options.feature_gates)}")
        return flags

    # -- readiness -------------------------------------------------------------------------------

    def _https(self, port: int, path: str = "/readyz") -> Callable[[], Awaitable[bool]]:
        return lambda: _answers(f"https://127.0.0.1:{port}{path}", self.credentials.ca)

    async def _api_server_ready(self) -> bool:
        """Ready, and the namespaces that every test uses are there (they come a little later)."""
        if not await _answers(f"{self.url}/readyz", self.credentials.ca):
            return False
        async with self.api() as api:
            try:
                await api.get("/api/v1/namespaces/default")
            except (ApiFailed, aiohttp.ClientError):
                return False
        return True


async def _answers(url: str, ca: Path | None) -> bool:
    base, _, path = url.rpartition("/")
    try:
        async with Api(base, ca=ca) as api:
            await api.get(f"/{path}")
    except (ApiFailed, aiohttp.ClientError, TimeoutError):
        return False
    return True


def collection(obj: dict[str, object]) -> str:
    """Return the URL path of the object's collection, by the regular plural of its kind."""
    version, kind, meta = str(obj["apiVersion"]), str(obj["kind"]), obj.get("metadata")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = meta.get("namespace") if isinstance(meta, dict) else None
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{scope}/{_plural(kind)}"


def _plural(kind: str) -> str:
    lower = kind.lower()
    if lower.endswith("y"):
        return f"{lower[:-1]}ies"  # NetworkPolicy; no kind ends in a vowel and y
    return f"{lower}es" if lower.endswith(("s", "x")) else f"{lower}s"
