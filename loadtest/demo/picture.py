"""The topology map: each host a cell, each leaf a group of cells, each block a paragraph.

With colour a gang is a colour; without (NO_COLOR, a pipe, a dumb terminal) a letter::

    agg-1   ■■■■■■■■ ■■■■■■■· ■■■▪▪▪▪·        agg-1   aaaaaaaa bbbbbbb. ccc+++++

``·`` is a free host, ``▪`` one with single small jobs on it.
"""

import colorsys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from rich.text import Text

from loadtest.demo.plan import Story
from loadtest.fleet import Host

_GOLDEN: Final = 0.618_033_988_75  # neighbouring indices get hues far apart
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_FREE: Final = "#4a5568"
_SMALL: Final = "#94a3b8"


def colour(index: int) -> str:
    """Return the colour of a gang, as #rrggbb."""
    hue = (index * _GOLDEN + 0.07) % 1.0
    bright = 0.95 if index % 2 else 0.78
    red, green, blue = colorsys.hsv_to_rgb(hue, 0.62, bright)
    return f"#{int(red * 255):02x}{int(green * 255):02x}{int(blue * 255):02x}"


def letter(index: int) -> str:
    """Return the letter of a gang."""
    return _LETTERS[index % len(_LETTERS)]


def topology_map(
    story: Story,
    hosts: Mapping[str, Counter[int]],
    *,
    width: int,
    colours: bool,
) -> Text:
    """Draw the fleet in lines of at most ``width`` characters."""
    gangs = {s.index for s in story.submissions if s.job.pods > 1}
    text = Text(no_wrap=True)
    label = max(len(host.block) for host in story.fleet.hosts) + 2
    for block, members in groupby(story.fleet.hosts, key=lambda host: (host.zone, host.block)):
        _draw_block(text, block[1], list(members), hosts, gangs, label, width, colours=colours)
    text.rstrip()
    return text


def _draw_block(
    text: Text,
    name: str,
    members: Sequence[Host],
    hosts: Mapping[str, Counter[int]],
    gangs: set[int],
    label: int,
    width: int,
    *,
    colours: bool,
) -> None:
    text.append(name.ljust(label), style="bold")
    column = label
    for _, leaf in groupby(members, key=lambda host: host.rack):
        cells = list(leaf)
        if column + len(cells) > width:
            text.append("\n" + " " * label)
            column = label
        for host in cells:
            glyph, style = _cell(hosts.get(host.name, Counter()), gangs, colours=colours)
            text.append(glyph, style=style)
        text.append(" ")
        column += len(cells) + 1
    text.append("\n")


def _cell(on_host: Counter[int], gangs: set[int], *, colours: bool) -> tuple[str, str]:
    """Return glyph and style of one host: the gang that holds most of it decides."""
    if not on_host:
        return ("·", _FREE) if colours else (".", "")
    index = max(on_host, key=lambda i: (i in gangs, on_host[i], -i))
    if index not in gangs:
        return ("▪", _SMALL) if colours else ("+", "")
    return ("■", colour(index)) if colours else (letter(index), "")


def legend(indices: Sequence[tuple[int, str]], *, colours: bool) -> Text:
    """Return the line that says which colour or letter is which gang."""
    text = Text()
    for index, words in indices:
        mark, style = ("■", colour(index)) if colours else (letter(index), "bold")
        text.append(mark, style=style)
        text.append(f" {words}   ", style="dim")
    free, small = ("·", "▪") if colours else (".", "+")
    text.append(free, style=_FREE if colours else "")
    text.append(" free   ", style="dim")
    text.append(small, style=_SMALL if colours else "")
    text.append(" small jobs", style="dim")
    return text
