"""Logs: the standard library's loggers, one JSON object per line on standard error.

One line per decision, none per node. Fields are passed as ``extra={"gang": …}`` and are
written beside ``ts``, ``level``, ``logger`` and ``msg``. Nothing here writes environment
values or secrets; callers pass identifiers and numbers.
"""

import logging
import sys
from datetime import UTC, datetime
from typing import Final, TextIO

import orjson

from muster.observability.printable import printable

_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Renders a record, its ``extra`` fields included, as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its line break."""
        line: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        line.update((key, value) for key, value in vars(record).items() if key not in _OWN)
        if record.exc_info is not None:
            line["error"] = self.formatException(record.exc_info)
        text = orjson.dumps(line, default=str, option=orjson.OPT_SERIALIZE_NUMPY).decode()
        return printable(text)


def configure(level: str, stream: TextIO | None = None) -> None:
    """Send every logger's records at ``level`` or above to ``stream`` (default stderr)."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # One line per connection error of a library is noise beside our own line per decision.
    logging.getLogger("asyncio").setLevel(logging.WARNING)
