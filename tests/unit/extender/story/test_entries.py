"""Every kind of event has its words."""

from typing import get_args

from extender.story.entries import _OF
from muster.cluster.events import Event


def test_every_event_has_words() -> None:
    assert set(_OF) == set(get_args(Event))
