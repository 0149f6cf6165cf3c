"""What goes into the image is pinned, and no more than what the programs need."""

import re
import tomllib
from pathlib import Path

import pytest

from loadtest.release import dockerfile

ROOT = Path(__file__).parents[3]
PINNED = re.compile(r"^([A-Za-z0-9_.-]+)==(\S+)", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    return dict(PINNED.findall((ROOT / "requirements" / name).read_text(encoding="utf-8")))


def test_the_image_has_the_versions_that_were_tested() -> None:
    tested = pins("dev.txt")
    for name in ("runtime.txt", "build.txt"):
        assert pins(name).items() <= tested.items()


def test_every_dependency_is_in_the_image_with_a_hash_and_no_test_tool_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    runtime = pins("runtime.txt")
    needed = {re.split(r"[>=<]", line)[0].lower() for line in project["dependencies"]}
    assert needed <= {name.lower() for name in runtime}
    assert not {"pytest", "mypy", "ruff", "hypothesis"} & set(runtime)
    text = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    assert text.count("--hash=sha256:") >= len(runtime)


def test_the_image_that_is_built_without_docker_starts_what_the_dockerfile_says() -> None:
    said = dockerfile.read(ROOT / "Dockerfile")
    assert (said.user, said.entrypoint, said.command) == ("65532:65532", ("muster",), ("--help",))
    assert set(said.environment) == {
        f"PATH=/opt/muster/bin:{dockerfile.PATH}",
        "PYTHONUNBUFFERED=1",
        "PYTHONDONTWRITEBYTECODE=1",
        "OPENBLAS_NUM_THREADS=1",
    }


def test_a_stage_before_the_last_says_nothing_about_the_image(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM a\nUSER 0\nENV A=1\nFROM b\nUSER 1\n")
    with pytest.raises(ValueError, match="the last stage has no ENV"):
        dockerfile.read(tmp_path / "Dockerfile")


def test_the_image_runs_as_nobody_and_installs_by_hash() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "USER 65532:65532" in text
    installs = [
        line for line in text.splitlines() if "pip install" in line and "/dist/" not in line
    ]
    assert installs
    assert all("--require-hashes" in line for line in installs)
