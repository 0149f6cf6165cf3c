"""Folders that a reader can take in: few files in each, and tests that mirror them."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOPS = ("muster", "extender", "webhook", "deviceplugin", "loadtest")
MOST_FILES = 20
TESTS_OF_NO_FOLDER = {"repository"}


def folders() -> list[Path]:
    found = {path.parent for top in TOPS for path in (ROOT / top).rglob("*.py")}
    return sorted(folder for folder in found if folder.name != "protogen")


def name_of(folder: Path) -> str:
    return folder.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("folder", folders(), ids=name_of)
def test_a_folder_has_no_more_files_than_a_reader_can_hold(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= MOST_FILES


def test_unit_tests_stand_in_folders_called_like_those_of_the_code() -> None:
    unit = ROOT / "tests" / "unit"
    tested = {path.parent.relative_to(unit) for path in unit.rglob("test_*.py")}
    there = {folder for folder in tested if (ROOT / folder).is_dir()}
    assert {folder.as_posix() for folder in tested - there} == TESTS_OF_NO_FOLDER
