"""Whether a KubeSchedulerConfiguration calls Muster with correct settings.

The message of each rule is what goes wrong without it; the fields are those of
kube-scheduler/config/v1 `Extender`. Certificates that a file names are checked if they are on this
machine, that is on the control-plane node.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from muster.cli.verification.finding import CheckFinding, broken, ok, unknown, warning
from muster.cli.verification.x509files import validity
from muster.workloads.devices import accelerators, devicenames

AREA: Final = "scheduler"
_GROUP: Final = "kubescheduler.config.k8s.io/"
_PATH: Final = "/v1/extender"
_SEE: Final = "see manifests/scheduler-config/, which explains every field"
_NAME_CA: Final = "tlsConfig.caFile: /etc/kubernetes/muster/ca.crt"
_LEAST_WEIGHT: Final = 15  # above all default plugins together
_LEAST_QPS: Final = 100  # two requests per pod: below it at most 50 pods/s are possible


class _Wire(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the structs of the file; unknown fields are ignored."""


class TlsConfig(_Wire, frozen=True):
    """config/v1 ExtenderTLSConfig."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    ca_data: str = ""


class ManagedResource(_Wire, frozen=True):
    """config/v1 ExtenderManagedResource."""

    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(_Wire, frozen=True):
    """config/v1 Extender."""

    url_prefix: str = msgspec.field(default="", name="urlPrefix")
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: TlsConfig | None = None
    http_timeout: str = msgspec.field(default="", name="httpTimeout")
    node_cache_capable: bool = False
    ignorable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()

    @property
    def host(self) -> str:
        """Its host name or address."""
        return urlsplit(self.url_prefix).hostname or ""


class Connection(_Wire, frozen=True):
    """component-base ClientConnectionConfiguration."""

    qps: float = 0
    burst: int = 0


class Configuration(_Wire, frozen=True):
    """config/v1 KubeSchedulerConfiguration, as far as Muster depends on it."""

    api_version: str = ""
    kind: str = ""
    client_connection: Connection = Connection()
    percentage_of_nodes_to_score: int | None = None
    extenders: tuple[Extender, ...] = ()


def check(path: Path, now: datetime) -> list[CheckFinding]:
    """Check a file and the certificates that it names."""
    try:
        text = path.read_bytes()
    except OSError as error:
        remedy = "name it with --scheduler-config, on the machine where kube-scheduler reads it"
        return [unknown(AREA, f"{path}: {error.strerror}", remedy)]
    return judge(text, str(path), now)


def judge(
    text: bytes, source: str, now: datetime, *, elsewhere: bool = False
) -> list[CheckFinding]:
    """Check a configuration, called `source` in findings.

    `elsewhere`: the files that it names are in another machine's or pod's file system.
    """
    try:
        config = msgspec.yaml.decode(text, type=Configuration)
    except msgspec.MsgspecError as error:
        return [broken(AREA, f"{source}: cannot be read: {error}", _SEE)]
    if config.kind != "KubeSchedulerConfiguration" or not config.api_version.startswith(_GROUP):
        found = f"{config.api_version or 'no apiVersion'} {config.kind or 'no kind'}"
        return [broken(AREA, f"{source}: is {found}, not a KubeSchedulerConfiguration", _SEE)]
    ours = [extender for extender in config.extenders if _PATH in extender.url_prefix]
    if not ours:
        text_ = f"{source}: no extender whose urlPrefix ends in {_PATH}: Muster is never asked"
        return [broken(AREA, text_, _SEE)]
    if len(ours) > 1:
        return [broken(AREA, f"{source}: {len(ours)} extenders are Muster; leave one", _SEE)]
    problems = [finding for rule in _RULES for finding in rule(config, ours[0])]
    problems += [] if elsewhere else _certificates(ours[0], now)
    return problems or [ok(AREA, f"{source}: calls {ours[0].url_prefix}")]


def _verbs(config: Configuration, it: Extender) -> Iterator[CheckFinding]:
    for field, verb, must in (
        ("filterVerb", it.filter_verb, "filter"),
        ("prioritizeVerb", it.prioritize_verb, "prioritize"),
        ("preemptVerb", it.preempt_verb, "preempt"),
        ("bindVerb", it.bind_verb, "bind"),
    ):
        if verb and verb != must:
            yield broken(
                AREA, f"{field}: {verb!r} is no path of Muster's", f"write {field}: {must}"
            )
    if not it.filter_verb:
        yield broken(AREA, "filterVerb: is missing: plans are not followed", "filterVerb: filter")
    if not it.preempt_verb:
        text = "preemptVerb: is missing: kube-scheduler may evict single members of a gang"
        yield warning(AREA, text, "preemptVerb: preempt")
    binders = [other.url_prefix for other in config.extenders if other.bind_verb]
    if len(binders) > 1:
        yield broken(AREA, f"bindVerb: of {', '.join(binders)}", "only one extender may bind")


def _address(_config: Configuration, it: Extender) -> Iterator[CheckFinding]:
    https = it.url_prefix.startswith("https://")
    loopback = it.host in {"localhost", "127.0.0.1", "::1"}
    if it.enable_https and not https:
        text = f"enableHTTPS: true, but urlPrefix {it.url_prefix} decides: nothing is encrypted"
        yield warning(AREA, text, "urlPrefix: https://…")
    if not https and not loopback:
        text = f"urlPrefix: {it.url_prefix} is neither loopback nor https: others can ask and read"
        yield warning(AREA, text, "use https:// with tlsConfig")
    tls = it.tls_config or TlsConfig()
    if https and tls.insecure:
        text = "tlsConfig.insecure: true: any server at that address is trusted"
        yield warning(AREA, text, _NAME_CA)
    elif https and not (tls.ca_file or tls.ca_data):
        # pkg/scheduler/extender.go, makeTransport: enableHTTPS without a CA sets Insecure.
        if it.enable_https:
            text = "tlsConfig: has no caFile: any server at that address is trusted"
            yield warning(AREA, text, _NAME_CA)
        else:
            text = "tlsConfig: has no caFile: the system's authorities did not sign the extender's"
            yield broken(AREA, text, _NAME_CA)
    if https and _is_address(it.host) and not tls.server_name and not loopback:
        text = f"tlsConfig.serverName: is missing, and {it.host} is an address"
        remedy = "tlsConfig.serverName: muster-extender.muster-system.svc"
        yield warning(AREA, text, f"{remedy}, unless the certificate names the address")


def _settings(config: Configuration, it: Extender) -> Iterator[CheckFinding]:
    if not it.node_cache_capable:
        text = "nodeCacheCapable: false: every call carries every Node in full, 30 times the bytes"
        yield warning(AREA, text, "nodeCacheCapable: true")
    if it.prioritize_verb and it.weight < _LEAST_WEIGHT:
        text = f"weight: {it.weight}: the default plugins outvote Muster's order"
        yield warning(AREA, text, "weight: 20")
    if it.bind_verb and it.ignorable:
        text = "ignorable: true with bindVerb: a failed bind is made up for without devices"
        yield broken(AREA, text, "ignorable: false")
    if it.bind_verb and config.percentage_of_nodes_to_score != 100:  # noqa: PLR2004  percent
        text = "percentageOfNodesToScore: not 100: ungated pods are shown nodes without the planned"
        yield warning(AREA, text, "percentageOfNodesToScore: 100")
    if config.client_connection.qps < _LEAST_QPS:
        text = f"clientConnection.qps: {config.client_connection.qps:g} (0: the default, 50)"
        yield warning(AREA, f"{text}: a pod costs two or more", "qps: 1000 and burst: 1000")
    names = {resource.name for resource in it.managed_resources}
    missing = sorted(accelerators.load().resources - names)
    if names and missing:
        text = f"managedResources: without {', '.join(missing)}: such pods are not sent"
        yield warning(AREA, text, "add what the cluster has; names are exact")
    ignored = {name for way in devicenames.load().file.sharing for name in way.uncounted}
    counted = [
        r.name for r in it.managed_resources if r.ignored_by_scheduler and r.name not in ignored
    ]
    if counted:
        text = f"managedResources: ignoredByScheduler of {', '.join(counted)}: not counted any more"
        yield broken(AREA, text, "ignoredByScheduler: false")


_Rule = Callable[[Configuration, Extender], Iterator[CheckFinding]]
_RULES: Final[tuple[_Rule, ...]] = (_verbs, _address, _settings)


def _certificates(it: Extender, now: datetime) -> list[CheckFinding]:
    tls = it.tls_config or TlsConfig()
    named = (("tlsConfig.caFile", tls.ca_file), ("tlsConfig.certFile", tls.cert_file))
    return [
        finding
        for field, name in named
        if name and (finding := _file(field, Path(name), now)) is not None
    ]


def _file(field: str, path: Path, now: datetime) -> CheckFinding | None:
    try:
        data = path.read_bytes()
    except OSError as error:
        remedy = "run this where kube-scheduler reads it"
        return unknown(AREA, f"{field}: {path}: {error.strerror}", remedy)
    return validity(AREA, f"{field} {path}", data, now)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
