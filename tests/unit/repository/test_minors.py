"""Which tests run on every minor of Kubernetes."""

from pathlib import Path

import pytest
from support.apiservers.minors import DIFFERS, ONE, of

from loadtest.testbed.controlplane.assets import MINORS

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize("file", DIFFERS)
def test_a_file_that_is_listed_is_there_and_runs_on_every_minor(file: str) -> None:
    assert (TESTS / file).is_file()
    assert of(TESTS / file) == MINORS


def test_a_file_that_is_not_listed_runs_on_the_newest_minor() -> None:
    assert of(TESTS / "integration/faults/test_storms.py") == ONE == (MINORS[-1],)
