"""Files of manifests/ that the command line needs, in the source tree or in the installation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_TREE: Final = Path(__file__).parents[3] / "manifests"
_INSTALLED: Final = Path(sys.prefix) / "share" / "muster"


def path(*parts: str) -> Path:
    """Return a file's path, for example ``path("rbac", "muster.yaml")``."""
    inside = _TREE.joinpath(*parts)
    return inside if inside.exists() else _INSTALLED.joinpath(*parts)
