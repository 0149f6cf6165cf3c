"""What the image starts and as whom: read from the Dockerfile, so that both images are alike."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Of an image that says nothing itself (Docker's and containerd's default for Unix).
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PAIR: Final = re.compile(r"(\w+)=(\S+)")


@dataclass(frozen=True, slots=True)
class Settings:
    """The last stage's settings."""

    environment: tuple[str, ...]  # "NAME=value"
    user: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]


def read(path: Path) -> Settings:
    """Return the settings of a Dockerfile's last stage; ValueError where one is missing."""
    said: dict[str, list[str]] = {}
    for word, rest in _instructions(path.read_text(encoding="utf-8")):
        if word == "FROM":
            said.clear()
        said.setdefault(word, []).append(rest)
    missing = [word for word in ("ENV", "USER", "ENTRYPOINT", "CMD") if word not in said]
    if missing:
        raise ValueError(f"{path}: the last stage has no {missing[0]}")
    pairs = [pair for rest in said["ENV"] for pair in _PAIR.findall(rest)]
    return Settings(
        environment=tuple(f"{name}={value.replace('$PATH', PATH)}" for name, value in pairs),
        user=said["USER"][-1],
        entrypoint=tuple(json.loads(said["ENTRYPOINT"][-1])),
        command=tuple(json.loads(said["CMD"][-1])),
    )


def _instructions(text: str) -> list[tuple[str, str]]:
    """Return each instruction with its words; comments may stand between continued lines."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    split = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [(words[0], words[1].strip()) for words in split]
