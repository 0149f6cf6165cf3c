"""A stand-in for the Go command: builds are recorded and come out as empty programs."""

import os
import stat
from pathlib import Path

import pytest

# Writes what it is asked to build; `go env GOVERSION` answers as the real one does.
GO = """#!/bin/sh
if [ "$1" = env ]; then echo go{version}; exit 0; fi
echo build cgo=$CGO_ENABLED >> "{calls}"
while [ "$1" != -o ]; do shift; done
out=$2; shift 2
while [ "${{1#-}}" != "$1" ]; do shift 2; done
for package in "$@"; do
  name=${{package##*/}}
  case $name in v3) name=server ;; esac
  printf '#!/bin/sh\\n' > "$out$name"; chmod +x "$out$name"
done
exit {code}
"""


def put_on_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch, version: str = "1.26.8", code: int = 0
) -> Path:
    """Put it first on PATH; returns the file that gets a line for each build."""
    calls = folder / "calls"
    program = folder / "bin" / "go"
    program.parent.mkdir(exist_ok=True)
    program.write_text(GO.format(version=version, calls=calls, code=code))
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return calls
