"""The webhook's configuration file: versioned YAML, every field checked on load.

The section ``managed`` and the list ``levels`` must say the same as the extender's: both
decide with them which pods Muster plans.
"""

from pathlib import Path
from typing import Final, Literal

import msgspec

from muster.kube import names
from muster.observability import configfile
from muster.workloads.managedpods import ManagedConfig, ManagedPolicy
from webhook.review.injectionmode import Early, Mode
from webhook.review.queueguard import QueuePolicy
from webhook.review.validation import ADMINISTRATORS, MUSTER_USERS

MIB: Final = 1024 * 1024
DAY_S: Final = 24 * 3600
_SERVICE: Final = "muster-webhook.muster-system.svc"


class _Section(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True
):
    """Base of all sections; carries the decoding rules only."""


class WebhookListen(_Section, frozen=True):
    """Where to listen. Port 0 lets the operating system choose."""

    host: str = "127.0.0.1"
    port: int = 0


class TrustedSettings(_Section, frozen=True):
    """Who is Muster (``users``, ``groups``), and who may lift its gate by hand.

    ``opt_out_groups``: who may label namespaces ``muster.dev/managed``; empty for whoever may label
    them at all.
    """

    users: tuple[str, ...] = tuple(sorted(MUSTER_USERS))
    groups: tuple[str, ...] = ()
    ungate_groups: tuple[str, ...] = tuple(sorted(ADMINISTRATORS))
    opt_out_groups: tuple[str, ...] = ()


class _SelfSigned(_Section, frozen=True, kw_only=True):
    """What certificates that Muster signs itself need; durations in seconds."""

    dns_names: tuple[str, ...] = (_SERVICE, f"{_SERVICE}.cluster.local", "localhost")
    addresses: tuple[str, ...] = ("127.0.0.1",)
    authority_seconds: float = 365 * DAY_S
    leaf_seconds: float = 7 * DAY_S
    settle_seconds: float = 60
    check_seconds: float = 60


class DirectorySource(_SelfSigned, frozen=True, kw_only=True, tag_field="source", tag="directory"):
    """Muster's own authority, kept in a directory (one replica, tests, the demo)."""

    path: str


class SecretSource(_SelfSigned, frozen=True, kw_only=True, tag_field="source", tag="secret"):
    """Muster's own authority, kept in a Secret that all replicas share."""

    namespace: str = "muster-system"
    name: str = "muster-webhook-authority"


class FilesSource(_Section, frozen=True, kw_only=True, tag_field="source", tag="files"):
    """A certificate of another program (cert-manager); read again when it changes."""

    cert_file: str
    key_file: str
    check_seconds: float = 10


class Registration(_Section, frozen=True):
    """The webhook configurations to keep right.

    ``create``: make them at start where they are missing or differ (the demo and tests;
    a cluster applies the manifests and gives no right to create). ``url``: how the API
    server reaches this process, ``auto`` for its own listening address; without one it is
    the Service ``service`` in ``namespace``. ``every_pod``: have pods sent that ask for nothing
    of Muster's, too: override policies may be for them.
    """

    name: str = "muster-webhook"
    create: bool = False
    url: str = ""
    service: str = "muster-webhook"
    namespace: str = "muster-system"
    every_pod: bool = False


class InjectionSettings(_Section, frozen=True):
    """What pods get in this cluster.

    ``cluster_profile``: a file in place of the cluster's own objects; nothing is watched then.
    ``fabrics``: files with fabric profiles beside those that come with Muster; one of the same
    name takes its place, and a FabricProfile of the cluster the place of both. ``mode``:
    ``shadow`` decides, counts and logs, and changes nothing. ``before_synced``: what becomes of
    pods until the cluster has been read once (``webhook.review.injectionmode.Early``).
    """

    cluster_profile: Path | None = None
    fabrics: tuple[Path, ...] = ()
    mode: Mode = Mode.ON
    before_synced: Early = Early.PASS


class CallersConfig(_Section, frozen=True):
    """Who may ask for reviews: without the section whoever reaches the port.

    ``client_ca_file``: PEM; callers show a certificate that it signed, of one of the names (common
    or DNS) in ``certificates``, any where that is empty. ``token_file``: or this bearer token. Both
    files are read again when they change. Health and metrics stay open. ``required``: false answers
    everybody, and reserves room only for those who show one of the two.
    """

    required: bool = True
    client_ca_file: Path | None = None
    certificates: tuple[str, ...] = ()
    token_file: Path | None = None


class ClientLimits(_Section, frozen=True):
    """What clients can take of the process.

    ``connections`` at a time; ``head_seconds``: for the head of a request; ``deciding``: reviews
    at a time of which everything has arrived; ``large_bytes``: of reviews over 64 KiB that are
    being sent, all together.
    """

    connections: int = 1024
    head_seconds: float = 5.0
    deciding: int = 256
    large_bytes: int = 64 * MIB


class ReservationsConfig(_Section, frozen=True, kw_only=True):
    """Asking the extender for a gang's places before its pods are made (docs/adr/0033).

    ``url``: of the extender's Service. ``ca_file``: what its certificate is verified with, PEM.
    Who asks is shown by ``token_file`` or ``cert_file`` and ``key_file`` (docs/callers.md); all of
    them are read anew for each question. ``wait_seconds``: for the answer, the pods wait meanwhile.
    """

    url: str
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    token_file: Path | None = None
    wait_seconds: float = 1.5


class QueuesConfig(_Section, frozen=True):
    """Whether new pods and jobs are asked about their queue (docs/webhook.md#queues)."""

    policy: QueuePolicy = QueuePolicy.WARN


class WebhookConfig(_Section, frozen=True, kw_only=True):
    """Everything that can be set.

    ``cluster``: name in logs and metrics, and of its ClusterProfile. ``levels``: node label
    keys, widest first.
    ``body_limit_bytes``: largest review; more is answered 413 (two objects of 3 MiB, the
    API server's limit, six times as long where each character is escaped, and the rest of the
    review: a longer one than can come would be a way past us). ``body_seconds``: time a client has
    for sending one. ``injection``: without it nothing is added but gate and profile.
    ``reservations``: without it, and without ``callers``, every pod of Muster's is gated.
    ``queues``: needs an API server; without one nothing is said of queues.
    ``suspends_jobs``: those of queues whose ``spec.admission`` is Suspend; needs an API server.
    ``drain_seconds``: how long requests are still served after SIGTERM,
    while ``/readyz`` already says no.
    """

    api_version: Literal["muster.dev/v1alpha1"] = "muster.dev/v1alpha1"
    kind: Literal["WebhookConfiguration"] = "WebhookConfiguration"
    certificates: DirectorySource | SecretSource | FilesSource
    cluster: str = "default"
    listen: WebhookListen = WebhookListen()
    levels: tuple[str, ...] = names.DEFAULT_LEVELS
    managed: ManagedConfig = ManagedConfig()
    trusted: TrustedSettings = TrustedSettings()
    registration: Registration | None = None
    injection: InjectionSettings | None = None
    callers: CallersConfig | None = None
    reservations: ReservationsConfig | None = None
    queues: QueuesConfig = QueuesConfig()
    suspends_jobs: bool = False
    limits: ClientLimits = ClientLimits()
    body_limit_bytes: int = 37 * MIB
    body_seconds: float = 5.0
    drain_seconds: float = 5.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @property
    def reserves(self) -> bool:
        """Whether room is reserved: for callers that show who they are, and for no other."""
        return self.reservations is not None and self.callers is not None


def load(path: Path) -> WebhookConfig:
    """Read ``path``; raises ``ConfigError`` whose text says what to mend."""
    return configfile.load(path, WebhookConfig, _problems)


def parse(data: bytes, *, source: str) -> WebhookConfig:
    """Read YAML ``data``; ``source`` is what messages call it."""
    return configfile.parse(data, WebhookConfig, _problems, source=source)


def _problems(config: WebhookConfig) -> list[str]:
    """Return one line per value that has the right type and makes no sense."""
    bounds: list[tuple[str, float, float, float]] = [
        ("listen.port", config.listen.port, 0, 65535),
        ("bodyLimitBytes", config.body_limit_bytes, MIB, 64 * MIB),
        ("bodySeconds", config.body_seconds, 0.1, 30),
        ("drainSeconds", config.drain_seconds, 0, 600),
        ("limits.connections", config.limits.connections, 16, 65536),
        ("limits.headSeconds", config.limits.head_seconds, 0.1, 30),
        ("limits.deciding", config.limits.deciding, 1, 65536),
        ("certificates.checkSeconds", config.certificates.check_seconds, 0.05, DAY_S),
    ]
    if config.reservations is not None:
        bounds.append(("reservations.waitSeconds", config.reservations.wait_seconds, 0.1, 2.5))
    if isinstance(config.certificates, _SelfSigned):
        bounds += _lifetime_bounds(config.certificates)
    return configfile.out_of_range(bounds) + _name_problems(config)


def _lifetime_bounds(made: _SelfSigned) -> list[tuple[str, float, float, float]]:
    """Return bounds that leave a rotation enough time: the last third of a life to settle in."""
    third = made.authority_seconds / 3
    return [
        ("certificates.authoritySeconds", made.authority_seconds, 1, 10 * 365 * DAY_S),
        ("certificates.leafSeconds", made.leaf_seconds, 1, made.authority_seconds),
        ("certificates.settleSeconds", made.settle_seconds, 0, third / 2),
    ]


def _name_problems(config: WebhookConfig) -> list[str]:
    found = []
    try:
        ManagedPolicy.of(config.managed)
    except ValueError as error:
        found.append(str(error))
    found += _caller_problems(config.callers)
    found += _reservation_problems(config.reservations)
    large, one = config.limits.large_bytes, config.body_limit_bytes
    if large < one:
        found.append(
            f"limits.largeBytes: {large} is less than bodyLimitBytes ({one}): the largest review "
            "does not fit; make it that or more"
        )
    made = config.certificates
    if isinstance(made, _SelfSigned) and not made.dns_names and not made.addresses:
        found.append("certificates.dnsNames: is empty, and so is addresses: name the Service")
    if isinstance(made, FilesSource) and config.registration is not None:
        found.append(
            "registration: cannot be kept right for a certificate of another authority: leave it "
            "out and let that authority (cert-manager's cainjector) set caBundle"
        )
    return found


def _caller_problems(callers: CallersConfig | None) -> list[str]:
    if callers is None:
        return []
    if callers.client_ca_file is None and callers.token_file is None:
        return ["callers: names neither clientCaFile nor tokenFile: add one, or leave it out"]
    if callers.certificates and callers.client_ca_file is None:
        return ["callers.certificates: no certificate is asked for: set callers.clientCaFile"]
    return []


def _reservation_problems(asked: ReservationsConfig | None) -> list[str]:
    if asked is None:
        return []
    found = []
    if not asked.url.startswith(("https://", "http://")):
        found.append(f"reservations.url: {asked.url!r} is no URL such as https://muster-extender")
    elif asked.url.startswith("http:") and asked.token_file is not None:
        found.append("reservations.tokenFile: a token is sent over https alone: change the url")
    if (asked.cert_file is None) != (asked.key_file is None):
        found.append("reservations: certFile and keyFile go together: name both, or neither")
    return found
