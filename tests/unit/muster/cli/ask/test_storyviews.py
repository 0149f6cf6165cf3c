"""Stories as people read them."""

import msgspec

from muster.apiwire.story import StoryAnswer, StoryEntry
from muster.cli.ask import storyviews

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
