"""Plots as inline SVG: lines over time, distributions, a map of racks. Pure: numbers in, text out.

Colours and strokes are classes, so that the page decides how they look in light and dark.

::

      y │   ╭─╮  ╭──        phases lie behind as bands with their names
        │ ╭─╯ ╰──╯
        └───────────── x
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 860  # of every plot, in its own units
HEIGHT: Final = 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 12, 26, 34
_TICKS: Final = 5  # steps on an axis of values
_TICKS_ACROSS: Final = 12
COLOURS: Final = 8  # classes s0 … s7 of the page


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plot: points in order of x; a y of ``None`` leaves a gap."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    steps: bool = False
    #: Whether every point is marked, so that a single point is visible, too.
    dots: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch of x with a name, drawn behind the lines."""

    name: str
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at ``began`` and was over at ``ended``, drawn before the lines."""

    name: str
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Axis:
    """The range of an axis."""

    title: str
    low: float
    high: float
    #: Whether it is logarithmic, for values above 0.
    log: bool = False
    unit: str = ""
    #: The only ticks that it has.
    only: tuple[float, ...] = ()

    def place(self, value: float) -> float:
        """Return where a value lies, 0 to 1; what is outside lies at the edge."""
        low, high = (
            (self._log(self.low), self._log(self.high)) if self.log else (self.low, self.high)
        )
        at = self._log(value) if self.log else value
        return min(1.0, max(0.0, (at - low) / ((high - low) or 1.0)))

    def ticks(self, count: int = _TICKS) -> list[float]:
        """Return round values on the axis in at most ``count`` steps; of a log axis, decades."""
        if self.only:
            return list(self.only)
        if self.log:
            decades = range(math.floor(self._log(self.low)), math.ceil(self._log(self.high)) + 1)
            return [v for d in decades if self.low <= (v := 10.0**d) <= self.high]
        step = round_step((self.high - self.low) / count)
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]

    @staticmethod
    def _log(value: float) -> float:
        return math.log10(max(value, 1e-9))


def round_step(width: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is at least ``width``."""
    if width <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(width))
    return next(power * f for f in (1, 2, 5, 10) if power * f >= width * (1 - 1e-9))


def upto(values: Iterable[float | None], *, least: float = 1.0) -> float:
    """Return a round value that none of the values is above."""
    top = max((v for v in values if v is not None), default=0.0)
    step = round_step(max(top, least) / _TICKS)
    return math.ceil(max(top, least) / step - 1e-9) * step


def plot(
    x: Axis,
    y: Axis,
    lines: Sequence[Line],
    bands: Sequence[Band] = (),
    marks: Sequence[Mark] = (),
) -> str:
    """Return one plot with a legend above it."""
    parts = [_open(f"{y.title} over {x.title}", HEIGHT)]
    parts += [_band(x, band, i) for i, band in enumerate(bands)]
    parts += [_grid_x(x, tick) for tick in x.ticks(_TICKS_ACROSS)] + [
        _grid_y(y, tick) for tick in y.ticks()
    ]
    parts += [_mark(x, mark) for mark in marks]
    parts += [_path(x, y, line, i) for i, line in enumerate(lines)]
    parts.append(_text(WIDTH - _RIGHT, HEIGHT - 4, x.title, "end"))
    parts.append("</svg>")
    return legend([line.name for line in lines], y.title) + "".join(parts)


def legend(names: Sequence[str], title: str) -> str:
    """Return the line above a plot: what is plotted, and which colour is what."""
    keys = "".join(
        f'<span><i class="k{i % COLOURS}"></i>{escape(name)}</span>' for i, name in enumerate(names)
    )
    return f'<p class="legend"><b>{escape(title)}</b>{keys}</p>'


def _open(label: str, height: float) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(label)}">'


def _x(axis: Axis, value: float) -> float:
    return _LEFT + axis.place(value) * (WIDTH - _LEFT - _RIGHT)


def _y(axis: Axis, value: float) -> float:
    return HEIGHT - _BOTTOM - axis.place(value) * (HEIGHT - _TOP - _BOTTOM)


def _band(axis: Axis, band: Band, index: int) -> str:
    left, right = _x(axis, band.began), _x(axis, band.ended)
    height = HEIGHT - _TOP - _BOTTOM
    box = (
        f'<rect class="band{index % 2}" x="{left:.1f}" y="{_TOP}" width="{right - left:.1f}" '
        f'height="{height}"><title>{escape(band.name)}</title></rect>'
    )
    wide_enough = right - left > 6.2 * len(band.name)
    return box + (_text((left + right) / 2, _TOP - 8, band.name, "middle") if wide_enough else "")


def _mark(axis: Axis, mark: Mark) -> str:
    """Draw a stroke at the beginning, and a veil as far as it lasted."""
    left, right = _x(axis, mark.began), _x(axis, max(mark.began, mark.ended))
    height = HEIGHT - _TOP - _BOTTOM
    return (
        f'<g class="mark"><title>{escape(mark.name)} at {mark.began:.1f} s</title>'
        f'<rect x="{left:.1f}" y="{_TOP}" width="{right - left:.1f}" height="{height}"/>'
        f'<line x1="{left:.1f}" x2="{left:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/></g>'
    )


def _grid_x(axis: Axis, value: float) -> str:
    at = _x(axis, value)
    line = f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'
    return line + _text(at, HEIGHT - _BOTTOM + 15, _number(value, axis.unit), "middle")


def _grid_y(axis: Axis, value: float) -> str:
    at = _y(axis, value)
    line = f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
    return line + _text(_LEFT - 7, at + 4, _number(value, axis.unit), "end")


def _path(x: Axis, y: Axis, line: Line, index: int) -> str:
    """Draw a line; a gap begins a new stroke."""
    words: list[str] = []
    pen, before = "M", 0.0
    for a, b in zip(line.x, line.y, strict=True):
        if b is None:
            pen = "M"
            continue
        px, py = _x(x, a), _y(y, b)
        if line.steps and pen == "L":
            words.append(f"L{px:.1f} {before:.1f}")
        words.append(f"{pen}{px:.1f} {py:.1f}")
        pen, before = "L", py
    path = f'<path class="line s{index % COLOURS}" d="{"".join(words)}"/>'
    return path + (_dots(x, y, line, index) if line.dots else "")


def _dots(x: Axis, y: Axis, line: Line, index: int) -> str:
    """Draw points as strokes of no length with round ends."""
    points = [(a, b) for a, b in zip(line.x, line.y, strict=True) if b is not None]
    strokes = "".join(f"M{_x(x, a):.1f} {_y(y, b):.1f}h0" for a, b in points)
    return f'<path class="dots s{index % COLOURS}" d="{strokes}"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _number(value: float, unit: str) -> str:
    if value and abs(value) < 1:
        return f"{value:.4g}{unit}"
    return f"{value:,.0f}{unit}" if value == int(value) else f"{value:,.1f}{unit}"


# ── the map of racks ────────────────────────────────────────────────────────────────────

_CELL: Final = 13
_GAP: Final = 2
_LABEL: Final = 86
SHADES: Final = 9  # classes h0 … h8 of the page: none in use … all in use


@dataclass(frozen=True, slots=True)
class Cell:
    """One rack and its GPUs."""

    block: str
    rack: str
    gpus: int
    used: int


def shade(cell: Cell) -> int:
    """Return the shade of a rack; only an empty one has the first, only a full one the last."""
    if not cell.used:
        return 0
    if cell.used >= cell.gpus:
        return SHADES - 1
    return 1 + min(SHADES - 3, cell.used * (SHADES - 2) // cell.gpus)


def heat_map(cells: Sequence[Cell]) -> str:
    """Return racks as cells, a row (or more) for each block."""
    per_row = (WIDTH - _LABEL) // (_CELL + _GAP)
    drawn: list[str] = []
    top, column, block = -(_CELL + _GAP), per_row, ""
    for cell in cells:
        new_block = cell.block != block
        if new_block or column == per_row:
            top, column, block = top + _CELL + _GAP, 0, cell.block
        if new_block:
            drawn.append(_text(_LABEL - 8, top + _CELL - 3, cell.block, "end"))
        drawn.append(_rack(cell, _LABEL + column * (_CELL + _GAP), top))
        column += 1
    height = max(top + _CELL + _GAP, _CELL)
    return _open("GPUs in use by rack", height) + "".join(drawn) + "</svg>"


def _rack(cell: Cell, x: float, y: float) -> str:
    words = f"{cell.rack}: {cell.used} of {cell.gpus} GPUs in use"
    return (
        f'<rect class="h{shade(cell)}" x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" rx="2">'
        f"<title>{escape(words)}</title></rect>"
    )
