"""The topology map: each host a cell, each leaf a group of cells, each block a paragraph.

With colour a gang is a colour; without (NO_COLOR, a pipe, a dumb terminal) a letter::

    agg-1   ■■■■■■■■ ■■■■■■■· ■■■▪▪▪▪·        agg-1   AAAAAAAA BBBBBBB. CCC++++.

``·`` is a free host, ``▪`` one with single small jobs on it.
"""

import colorsys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from rich.text import Text

from loadtest.demo.plan import Story
from loadtest.traces.fleet import Host

_GOLDEN: Final = 0.618_033_988_75  # neighbouring indices get hues far apart
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_LABEL: Final = 11  # columns in front of a block
_FREE: Final = "#4a5568"
_SMALL: Final = "#94a3b8"


class Marks:
    """Colour or letter of each gang of several pods, given out by size.

    The largest come first, so that those which fill the map look least alike.
    """

    def __init__(self, story: Story, *, colours: bool) -> None:
        gangs = [s for s in story.submissions if s.job.pods > 1]
        by_size = sorted(gangs, key=lambda s: (-s.job.gpus, s.index))
        self._rank = {s.index: rank for rank, s in enumerate(by_size)}
        self.colours = colours

    def __contains__(self, index: int) -> bool:
        return index in self._rank

    def gang(self, index: int) -> tuple[str, str]:
        """Return glyph and style of a gang."""
        rank = self._rank[index]
        if self.colours:
            return "■", _colour(rank)
        return _LETTERS[rank % len(_LETTERS)], "bold"

    @property
    def free(self) -> tuple[str, str]:
        """Return glyph and style of a host with nothing on it."""
        return ("·", _FREE) if self.colours else (".", "")

    @property
    def small(self) -> tuple[str, str]:
        """Return glyph and style of a host with single pods only."""
        return ("▪", _SMALL) if self.colours else ("+", "")

    def host(self, on_host: Counter[int]) -> tuple[str, str]:
        """Return glyph and style of a host: the gang that holds most of it decides."""
        if not on_host:
            return self.free
        index = max(on_host, key=lambda i: (i in self, on_host[i], -i))
        return self.gang(index) if index in self else self.small


def _colour(rank: int) -> str:
    """Return #rrggbb; neighbours in rank get hues far apart, later rounds another brightness."""
    hue = (rank * _GOLDEN + 0.55) % 1.0
    saturation, value = ((0.55, 0.95), (0.70, 0.80), (0.40, 0.85))[rank // 8 % 3]
    red, green, blue = colorsys.hsv_to_rgb(hue, saturation, value)
    return f"#{int(red * 255):02x}{int(green * 255):02x}{int(blue * 255):02x}"


def topology_map(
    story: Story, hosts: Mapping[str, Counter[int]], *, width: int, marks: Marks
) -> Text:
    """Draw the fleet in lines of at most ``width`` characters."""
    text = Text(no_wrap=True)
    label = max(_LABEL, *(len(host.block) + 2 for host in story.fleet.hosts))
    for block, members in groupby(story.fleet.hosts, key=lambda host: (host.zone, host.block)):
        cells = list(members)
        lines = _leaves(cells, hosts, width - label, marks)
        notes = [(block[1], "bold"), (f"{len(cells)} hosts", "dim")]
        for at, line in enumerate(lines):
            words, style = notes[at] if at < len(notes) else ("", "")
            text.append(words.ljust(label), style=style)
            text.append_text(line)
            text.append("\n")
        text.append("\n")
    text.rstrip()
    return text


def _leaves(
    members: Sequence[Host], hosts: Mapping[str, Counter[int]], width: int, marks: Marks
) -> list[Text]:
    """Set the leaves of one block into lines of at most ``width`` characters."""
    lines = [Text()]
    for _, leaf in groupby(members, key=lambda host: host.rack):
        cells = list(leaf)
        if len(lines[-1]) + len(cells) > width:
            lines.append(Text())
        for host in cells:
            glyph, style = marks.host(hosts.get(host.name, Counter()))
            lines[-1].append(glyph, style=style)
        lines[-1].append(" ")
    return lines


def legend(gangs: Sequence[tuple[int, str]], marks: Marks) -> Text:
    """Return the line that says which colour or letter is which gang."""
    text = Text()
    named = [(marks.gang(index), words) for index, words in gangs]
    for (glyph, style), words in [*named, (marks.small, "small jobs"), (marks.free, "free")]:
        text.append(glyph, style=style)
        text.append(f" {words}   ", style="dim")
    text.rstrip()
    return text
