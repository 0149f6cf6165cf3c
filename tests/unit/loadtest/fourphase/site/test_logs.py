"""Logs are kept of a run that did not go well, and of no other."""

from pathlib import Path

import pytest

from loadtest.fourphase.site import logs
from loadtest.fourphase.site.logs import FOLDER, keeping


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return where two programs have written a log each, and one more has a key."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("extender", "webhook"):
        (folder / f"{name}.log").write_text(f"of the {name}\n", encoding="utf-8")
    (folder / "serving.key").write_text("secret", encoding="utf-8")
    return folder


def kept(out: Path) -> dict[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in (out / FOLDER).glob("*")}


BOTH = {"extender.log": "of the extender\n", "webhook.log": "of the webhook\n"}


def test_logs_and_no_keys_are_kept_unless_somebody_says_that_all_went_well(
    programs: Path, tmp_path: Path
) -> None:
    with keeping(programs, tmp_path) as good:
        good.needed = False
    assert logs.note(tmp_path) == []
    with keeping(programs, tmp_path):
        pass
    assert kept(tmp_path) == BOTH
    assert logs.note(tmp_path) == [f"logs of all programs: {tmp_path / FOLDER}"]


def test_logs_are_kept_of_a_run_that_ended_early(programs: Path, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ended early"), keeping(programs, tmp_path):
        raise RuntimeError("the extender ended early")
    assert kept(tmp_path) == BOTH


def test_what_an_earlier_run_left_is_not_taken_for_this_ones(
    programs: Path, tmp_path: Path
) -> None:
    with keeping(programs, tmp_path):
        pass
    logs.forget(tmp_path)
    assert logs.note(tmp_path) == []
    logs.forget(tmp_path / "nowhere")
