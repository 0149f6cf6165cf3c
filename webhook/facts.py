"""What injection knows beside the pod: read from files here, looked at by every review.

A file that cannot be used ends the start with a message; it is never half taken.
"""

from collections.abc import Sequence
from pathlib import Path

from injection import catalog, placesdata
from injection.errors import ProfileError
from injection.fabric import Fabrics
from injection.subject import Facts
from webhook.config import InjectionFiles
from webhook.errors import WebhookError
from workloads.managed import Policy


def from_files(files: InjectionFiles, policy: Policy) -> Facts:
    """Return the facts that files tell; raises ``WebhookError`` with what is wrong where."""
    try:
        cluster = catalog.parse_cluster(_read(files.cluster_profile), str(files.cluster_profile))
        fabrics = _with_own(catalog.load(), files.fabrics)
    except (ProfileError, OSError) as error:
        raise WebhookError(f"injection: {error}") from error
    problems = catalog.unknown_fabrics(cluster, fabrics)
    if problems:
        raise WebhookError("\n".join(f"injection: {problem}" for problem in problems))
    return Facts(cluster, fabrics, policy.accelerators, placesdata.load())


def _with_own(shipped: Fabrics, files: Sequence[Path]) -> Fabrics:
    own = (catalog.parse(_read(file), source=str(file)) for file in files)
    return {**shipped, **{fabric.name: fabric for fabric in own}}


def _read(path: Path) -> bytes:
    return path.read_bytes()
