"""A recorded terminal as a picture: the first block of a page that begins with a command.

Recordings are made, and pictures drawn, by the tests that run their commands:
tests/integration/installation/test_recorded_terminal_real.py for docs/install.md,
tests/integration/queueing/test_recorded_sharing_real.py for docs/sharing.md.
"""

import io
import re
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from loadtest.demo.svgframe import SVG_FRAME

BLOCK: Final = re.compile(r"(?<=^```\n)\$ .*?(?=^```$)", re.MULTILINE | re.DOTALL)
PROMPT: Final = "$ "
_WIDTH: Final = 114  # columns, as many as the demonstration's picture


def recording(page: Path) -> str:
    """Return the recorded terminal of a page; raises ``ValueError`` for none."""
    found = BLOCK.search(page.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{page}: has no block that begins with {PROMPT!r}")
    return found[0]


def picture(recorded: str, title: str) -> str:
    """Return a recorded terminal as SVG; commands stand out."""
    canvas = Console(
        record=True,
        highlight=False,
        width=_WIDTH,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        no_color=False,
    )
    for line in recorded.rstrip("\n").split("\n"):
        canvas.print(Text(line, style="bold" if line.startswith(PROMPT) else ""))
    return canvas.export_svg(
        title=title,
        code_format=SVG_FRAME,
        unique_id="muster",
    )
