"""What an installation is made of, on this machine: its certificates as files."""

import base64
from pathlib import Path

from support.machine import quickyaml

from muster.cli.ops import issuing


def certificates(directory: Path, address: str = "127.0.0.1") -> None:
    """Make them (in ``made``), and lay the extender's out as its Secret is mounted."""
    made = directory / "made"
    issuing.write(made, "muster-system", (address,), 90)
    secrets = quickyaml.load_all((made / "secrets.yaml").read_text())
    [tls] = [s for s in secrets if s["metadata"]["name"] == "muster-extender-tls"]
    for name, value in tls["data"].items():
        (directory / name).write_bytes(base64.b64decode(value))
