"""The phase of `muster bench webhook` in which authorities come and go under load.

Like an API server that reads the published bundle and dials now and then: a client that trusts
what ``ca.crt`` holds at that moment, a few dozen calls over it, the next one. A handshake that
fails, or a call, is an error.
"""

from __future__ import annotations

import json
import ssl
import time
from pathlib import Path
from typing import Final

from loadtest.benches import tlsload
from loadtest.benches.tlsload import Target

_CONNECTIONS: Final = 4
_CALLS: Final = 40  # over each set of connections
_AT_MOST_S: Final = 60.0


def rotating(target: Target, folder: Path, rotations: int) -> dict[str, object]:
    """Call until the authority has been replaced ``rotations`` times; return what was seen."""
    seen = [_signer(folder)]
    calls = failed = 0
    until = time.monotonic() + _AT_MOST_S
    while len(seen) <= rotations and time.monotonic() < until:
        try:
            context = tlsload.trusting((folder / "ca.crt").read_bytes())
            done = tlsload.closed(target, context, _CONNECTIONS, _CALLS)
        except (ssl.SSLError, OSError):
            failed += _CALLS
            continue
        calls, failed = calls + len(done.seconds), failed + done.errors
        signer = _signer(folder)
        if signer != seen[-1]:
            seen.append(signer)
    failed += rotations + 1 - len(seen)  # one that did not come in time
    return {"rotations": len(seen) - 1, "calls_during_rotations": calls, "failed": failed}


def _signer(folder: Path) -> str:
    """Return the certificate of the authority that signs now."""
    stored = json.loads((folder / "authority.json").read_bytes())
    return str(stored["currentCertificate"])
