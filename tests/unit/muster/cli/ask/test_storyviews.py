"""Stories as people read them."""

import msgspec
import pytest

from muster.apiwire.story import StoryAnswer, StoryEntry
from muster.cli.ask import storyviews
from muster.cli.ask.story import subject
from muster.cli.output import Failure

NOW = 1_800_000_000.0
GANG = ("muster/default/g",)
ENTRIES = (
    StoryEntry("watch:7", "", NOW, "watch", "default/g-0", GANG, "waits, gated"),
    StoryEntry("watch:8", "gone:3", NOW + 0.010, "watch", "", (), "node n1 is gone"),
    StoryEntry("look:9", "watch:7", NOW + 0.025, "look", "", GANG, "is complete"),
)


def shown(story: StoryAnswer, width: int | None = None) -> list[str]:
    return storyviews.story(msgspec.json.encode(story), width).splitlines()


def test_a_story_is_a_line_for_each_entry_with_the_time_since_its_cause() -> None:
    story = StoryAnswer("gang", "default/g", 100, NOW, 2, ENTRIES)
    assert shown(story) == [
        "TIME           +MS   ID        CAUSE     WHAT",
        "08:00:00.000   +0    watch:7   -         pod default/g-0 waits, gated",
        "08:00:00.010   +10   watch:8   gone:3    node n1 is gone",
        "08:00:00.025   +25   look:9    watch:7   muster/default/g is complete",
        "2 older entries are left out: --limit",
    ]
    assert shown(story, 20)[1] == "08:00:00.000   +0   "


def test_an_empty_story_says_since_when_nothing_happened() -> None:
    assert shown(StoryAnswer("pod", "a/b", 100, NOW, 0, ())) == [
        "pod a/b: nothing happened to it since 08:00:00.000"
    ]
    assert shown(StoryAnswer("pod", "a/b", 100, None, 0, ())) == ["pod a/b: nothing happened to it"]
    assert "stores no story" in shown(StoryAnswer("pod", "a/b", 0, None, 0, ()))[0]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("g-0", ("pod", "g-0")),
        ("po/g-0", ("pod", "g-0")),
        ("gangs/g", ("gang", "g")),
    ],
)
def test_a_subject_is_named_as_for_kubectl(text: str, found: tuple[str, str]) -> None:
    assert subject(text) == found


@pytest.mark.parametrize("text", ["", "node/n1", "pod/", "gang/a/b"])
def test_other_subjects_are_refused_with_the_way_to_write_them(text: str) -> None:
    with pytest.raises(Failure, match="write pod/NAME or gang/NAME"):
        subject(text)
