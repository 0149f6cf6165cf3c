"""An error of ours as one line: what was raised, and where.

The place is the innermost frame: file, line and function, without the machine's paths.
"""

import traceback
from pathlib import PurePath


def described(error: Exception) -> str:
    """Return for instance "IndexError: … (search/joint.py:12 in _inside)"."""
    innermost = traceback.extract_tb(error.__traceback__)[-1]
    path = PurePath(innermost.filename)
    where = f"{path.parent.name}/{path.name}:{innermost.lineno} in {innermost.name}"
    return f"{type(error).__name__}: {error} ({where})"
