"""Published data: files that may not be copied here, in a folder that the user names."""

from pathlib import Path


class DataMissingError(Exception):
    """A named data set is not there; the message says where it was looked for."""


def located(data: Path, file: Path, wanted: str, otherwise: str = "") -> Path:
    """Return where ``file`` lies in the folder ``data``.

    ``wanted``: the option and value that need it; ``otherwise``: what else could be given.
    Raises ``DataMissingError`` when it is not there.
    """
    path = data / file
    if not path.exists():
        raise DataMissingError(
            f"{wanted}: {path} is not there: give --data DIR, where it is{otherwise}"
        )
    return path
