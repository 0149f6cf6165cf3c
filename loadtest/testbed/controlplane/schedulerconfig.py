"""KubeSchedulerConfigurations for tests and benches: the shipped files with the addresses put in.

What is measured is what is shipped: only the extender's address, the credentials, leader election
and the request budget are replaced, the last one by the same figure on every side of a comparison.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import yaml

SHIPPED: Final = Path(__file__).parents[3] / "manifests" / "scheduler-config"
UNTHROTTLED: Final = 5000  # requests/s; more than two cores can serve, so it never decides

Variant = Literal["bare", "recommended", "with-bind"]


def load(variant: Variant) -> dict[str, Any]:
    """Return a shipped configuration as it is; "bare" is kube-scheduler without an extender."""
    if variant == "bare":
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
        }
    text = (SHIPPED / f"{variant}.yaml").read_text(encoding="utf-8")
    config: dict[str, Any] = yaml.safe_load(text)
    return config


def write(
    variant: Variant,
    *,
    directory: Path,
    kubeconfig: Path,
    extender_url: str | None = None,
    extender_ca: Path | None = None,
    qps: int = UNTHROTTLED,
    node_cache_capable: bool = True,
) -> Path:
    """Write the configuration into `directory` for kube-scheduler --config, and return the file.

    `extender_url` is scheme, host and port, without a path; "bare" takes none. `extender_ca`
    signed its certificate, where it serves TLS. `node_cache_capable` as shipped: False has
    kube-scheduler send whole nodes.
    """
    config = load(variant)
    config["clientConnection"] = {"kubeconfig": str(kubeconfig), "qps": qps, "burst": qps}
    config["leaderElection"] = {"leaderElect": False}  # one scheduler: a lease only costs start-up
    for extender in config.get("extenders", ()):
        if extender_url is None:
            raise ValueError(f"variant {variant!r} calls an extender: give extender_url")
        extender["urlPrefix"] = f"{extender_url}/v1/extender"
        extender["nodeCacheCapable"] = node_cache_capable
        if extender_ca is not None:
            extender |= {"enableHTTPS": True, "tlsConfig": {"caFile": str(extender_ca)}}
    path = directory / f"{variant}.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path
