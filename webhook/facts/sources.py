"""Where the facts of injection come from: files, or the live cluster.

A file that cannot be used ends the start with a message; it is never half taken.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from muster.injection.errors import ProfileError
from muster.injection.profiles import catalog, tiers
from muster.injection.profiles.fabric import Fabrics
from muster.injection.subject import Facts
from muster.kube.client import KubeClient
from muster.observability.configfile import ConfigError
from muster.workloads.managedpods import ManagedPolicy
from webhook.config import InjectionSettings, WebhookConfig
from webhook.errors import WebhookError
from webhook.facts.livecluster import LiveFacts, Report, Static
from webhook.review.injectionmode import Early


def follows(config: WebhookConfig, *, has_api_server: bool) -> bool:
    """Return whether the cluster is to be followed; ``ConfigError`` where it is and cannot be."""
    asked = config.injection is not None and config.injection.cluster_profile is None
    if asked and not has_api_server:
        raise ConfigError(
            "injection: needs an API server: give --kubeconfig, or a file as clusterProfile"
        )
    return asked


def live_facts(
    config: WebhookConfig, policy: ManagedPolicy, client: KubeClient, report: Report
) -> LiveFacts:
    """Return what follows the cluster; raises ``WebhookError`` for bad files beside it."""
    fabrics = _fabrics(config.injection or InjectionSettings())
    static = Static(policy.accelerators, tiers.load(), fabrics)
    return LiveFacts(client, config.cluster, static, report)


def knowledge(
    config: WebhookConfig, policy: ManagedPolicy, live: LiveFacts | None
) -> Callable[[], Facts | Early | None]:
    """Return what gives the facts of the moment; raises ``WebhookError`` for bad files."""
    injection = config.injection
    if injection is None:
        return lambda: None
    if live is None:
        fixed = from_files(injection, policy)
        return lambda: fixed
    early = injection.before_synced
    return lambda: live.current() or early


def from_files(files: InjectionSettings, policy: ManagedPolicy) -> Facts:
    """Return the facts that are in files; raises ``WebhookError`` with what is wrong where."""
    assert files.cluster_profile is not None  # noqa: S101 - asked for by the caller
    path, fabrics = files.cluster_profile, _fabrics(files)
    try:
        cluster = catalog.parse_cluster(path.read_bytes(), str(path))
    except (ProfileError, OSError) as error:
        raise WebhookError(f"injection: {error}") from error
    problems = catalog.unknown_fabrics(cluster, fabrics)
    if problems:
        raise WebhookError("\n".join(f"injection: {problem}" for problem in problems))
    return Facts(cluster, fabrics, policy.accelerators, tiers.load())


def _fabrics(files: InjectionSettings) -> Fabrics:
    try:
        return _with_own(catalog.load(), files.fabrics)
    except (ProfileError, OSError) as error:
        raise WebhookError(f"injection: {error}") from error


def _with_own(shipped: Fabrics, files: Sequence[Path]) -> Fabrics:
    own = (catalog.parse(file.read_bytes(), source=str(file)) for file in files)
    return {**shipped, **{fabric.name: fabric for fabric in own}}
