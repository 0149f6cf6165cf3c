"""What a load test wrote to stderr beside its progress."""

import re
from typing import Final

_PROGRESS: Final = re.compile(r"muster loadtest: (starting |beside bare: |[\d,]+ s: )")


def but_progress(stderr: str) -> str:
    """Return the lines that tell of something else, as they were written."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not _PROGRESS.match(line))
