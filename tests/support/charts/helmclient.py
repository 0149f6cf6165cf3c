"""The real helm on the chart of this tree: installs, renders, lints, and what it said."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from support.machine import quickyaml

from loadtest.testbed.controlplane.assets import ensure_helm, ensure_kustomize

JSON = dict[str, Any]
MANIFESTS = Path(__file__).parents[3] / "manifests"
CHART = MANIFESTS / "helm" / "muster"
NAMESPACE = "muster-system"


class HelmFailed(Exception):
    """helm ended with an error; the text is all that it printed."""


@dataclass(frozen=True, slots=True)
class Helm:
    """helm with a folder of its own for its settings, and maybe a cluster."""

    home: Path
    kubeconfig: Path | None = None

    async def __call__(self, *words: str | Path, namespace: str = NAMESPACE) -> str:
        """Run one command and return its standard output; raises ``HelmFailed``."""
        program = await asyncio.to_thread(ensure_helm)
        environment = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "HELM_CACHE_HOME": str(self.home / "cache"),
            "HELM_CONFIG_HOME": str(self.home / "config"),
            "HELM_DATA_HOME": str(self.home / "data"),
            "KUBECONFIG": str(self.kubeconfig or self.home / "none"),
        }
        process = await asyncio.create_subprocess_exec(
            program,
            *words,
            f"--namespace={namespace}",
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, complaints = await process.communicate()
        if process.returncode:
            raise HelmFailed(out.decode() + complaints.decode())
        return out.decode()

    async def render(self, *words: str, values: JSON | None = None) -> list[JSON]:
        """Return the objects of the chart for these values, hooks included."""
        file = self.home / "values.yaml"
        file.write_text(yaml.safe_dump(values or {}))
        out = await self("template", "muster", CHART, "--values", file, *words)
        return [doc for doc in quickyaml.load_all(out) if doc]


async def kustomized(folder: Path, overlay: str, components: Sequence[str] = ()) -> list[JSON]:
    """Return the objects of an overlay with components, as `kubectl apply -k` makes them."""
    (folder / "muster").unlink(missing_ok=True)
    (folder / "muster").symlink_to(MANIFESTS.parent)
    top = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"muster/manifests/overlays/{overlay}"],
        "components": [f"muster/manifests/components/{name}" for name in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(top))
    program = await asyncio.to_thread(ensure_kustomize)
    process = await asyncio.create_subprocess_exec(
        program, "build", folder, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return [doc for doc in quickyaml.load_all(out) if doc]


def older(folder: Path, version: str) -> Path:
    """Return a copy of the chart that says it is of another version."""
    target = folder / f"muster-{version}"
    shutil.copytree(CHART, target)  # the linked files are copied, as `helm package` does
    text = (target / "Chart.yaml").read_text()
    chart = quickyaml.load(text)
    chart |= {"version": version, "appVersion": version}
    (target / "Chart.yaml").write_text(yaml.safe_dump(chart))
    return target
