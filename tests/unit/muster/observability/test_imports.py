"""Programs begin without the cycle collector, and run with it."""

import gc
import importlib
import subprocess
import sys

import pytest

from muster.observability.imports import uncollected

COUNTED = """
import gc
runs = []
gc.callbacks.append(lambda phase, info: phase == "stop" and runs.append(info))
import {program}
print(len(runs), gc.isenabled())
"""


@pytest.mark.parametrize(
    "program",
    ["extender.__main__", "webhook.__main__", "deviceplugin.__main__", "loadtest.chaos.__main__"],
)
def test_a_program_is_imported_with_next_to_no_collection_and_runs_with_them(program: str) -> None:
    code = COUNTED.format(program=program)
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    runs, enabled = said.stdout.split()
    assert int(runs) < 60  # of hundreds; some of the standard library comes before ours
    assert enabled == "True"


def test_the_collector_works_again_after_an_import_that_failed() -> None:
    with pytest.raises(ModuleNotFoundError), uncollected():
        importlib.import_module("muster.nowhere")
    assert gc.isenabled()
