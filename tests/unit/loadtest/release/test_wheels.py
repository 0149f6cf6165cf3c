"""Which locked wheels the image gets is decided for its Python, not for the one that runs this."""

import re

import pytest

from loadtest.release import build, wheels
from loadtest.release.wheels import Target


def names(target: Target) -> list[str]:
    text = build.LOCK.read_text(encoding="utf-8")
    return [one.partition("==")[0] for one in wheels.requirements(text, target)]


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_every_project_is_there_once_and_none_that_is_for_windows(python: str) -> None:
    found = names(Target(python, (2, 36)))
    assert len(found) == len(set(found))
    assert {"numpy", "grpcio", "aiohttp"} <= set(found)
    assert "win-inet-pton" not in found


def test_the_marker_chooses_the_version() -> None:
    text = (
        "numpy==2.4.6 ; python_full_version < '3.12' \\\n    --hash=sha256:aa\n    # via\n"
        "numpy==2.5.5 ; python_full_version >= '3.12' \\\n    --hash=sha256:bb\n"
    )
    old = wheels.requirements(text, Target("3.11", (2, 36)))
    new = wheels.requirements(text, Target("3.13", (2, 41)))
    assert [one.partition(" ")[0] for one in (*old, *new)] == ["numpy==2.4.6", "numpy==2.5.5"]
    assert "sha256:aa" in old[0]
    assert "sha256:bb" in new[0]


def test_every_requirement_keeps_its_hashes() -> None:
    text = build.LOCK.read_text(encoding="utf-8")
    for one in wheels.requirements(text, Target("3.11", (2, 36))):
        assert re.search(r"\n +--hash=sha256:[0-9a-f]{64}", one), one


def test_no_wheel_is_for_a_newer_c_library_than_the_bases() -> None:
    options = Target("3.11", (2, 36), "x86_64").options
    assert "--platform=manylinux_2_36_x86_64" in options
    assert "--platform=manylinux_2_37_x86_64" not in options
    assert "--python-version=3.11" in options
