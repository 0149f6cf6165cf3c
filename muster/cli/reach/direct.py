"""--extender URL: a request straight to the extender, with a certificate or a token file."""

from __future__ import annotations

import argparse
import http.client
import urllib.error
from dataclasses import dataclass

from muster.cli.ask import connection
from muster.cli.output import ExitCode, Failure
from muster.cli.reach import refusals
from muster.cli.reach.exchange import Answer


@dataclass(frozen=True, slots=True)
class Direct:
    """The way to a URL."""

    arguments: argparse.Namespace

    def ask(self, path: str, timeout_s: float, body: bytes | None = None) -> bytes:
        """Return the extender's answer. Raises ``Failure``."""
        url = self.arguments.extender.rstrip("/") + path
        try:
            return connection.get(url, self.arguments, timeout_s, body=body)
        except urllib.error.HTTPError as refused:
            said = refusals.body_of(Answer(refused.code, refused.read(2000)))
            if said.error:
                raise refusals.of_extender(said.error, refused.code) from refused
            text = f"{url}: answered {refused.code} and is no extender; --extender URL names it"
            raise Failure(text, code=ExitCode.UNREACHED) from refused
        except (OSError, http.client.HTTPException) as error:
            why = refusals.reason(error)
            text = f"extender {url}: {why}; name the extender with --extender URL"
            raise Failure(text, code=ExitCode.UNREACHED) from error
