"""``python -m loadtest.benches.echo``: a server of aiohttp that sends back what it gets.

The floor of ``muster bench webhook`` (with ``--chain`` and ``--key`` it speaks TLS), of
``muster bench filter`` and of ``muster bench sustained``: the same server library and no work.
"""

import argparse
import asyncio
import ssl
from pathlib import Path
from typing import Final

from aiohttp import web

from loadtest.testbed.controlplane.process import announce, until_terminated

BODY_LIMIT_BYTES: Final = 64 << 20  # as the extender's


async def _echo(request: web.Request) -> web.Response:
    return web.Response(body=await request.read(), content_type="application/json")


async def _serve(context: ssl.SSLContext | None) -> None:
    app = web.Application(client_max_size=BODY_LIMIT_BYTES)
    app.router.add_post("/echo", _echo)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    announce(runner, "http" if context is None else "https")
    await until_terminated()
    await runner.cleanup()


def main() -> None:
    """Serve until the process is asked to end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chain", type=Path)
    parser.add_argument("--key", type=Path)
    given = parser.parse_args()
    context = None
    if given.chain is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(given.chain, given.key)
    asyncio.run(_serve(context))


if __name__ == "__main__":
    main()
