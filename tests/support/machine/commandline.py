"""The command line: as a program of its own, or in this process.

A program takes two seconds of CPU before it reads its arguments.
"""

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from muster.cli.main import main

ROOT: Final = Path(__file__).parents[3]
Refusal = Callable[..., str]
"""Takes arguments that are wrong and returns what is written about them."""


def muster(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program in the root of the repository, whatever its exit code."""
    return subprocess.run(
        [sys.executable, "-m", "muster.cli.main", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **environment},
    )


def muster_here(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process; what it starts with `Program` is forked (launcher.py)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str]) -> Refusal:
    """Expect exit code 2, nothing on stdout and no traceback."""

    def run(*arguments: str) -> str:
        try:
            code = main(list(arguments))
        except SystemExit as end:  # argparse
            code = end.code if isinstance(end.code, int) else 1
        said = capsys.readouterr()
        assert (code, said.out) == (2, ""), said.err
        assert "Traceback" not in said.err
        return said.err

    return run
