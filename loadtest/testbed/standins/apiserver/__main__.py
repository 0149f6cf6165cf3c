"""``python -m loadtest.testbed.standins.apiserver``: run a simulated API server until SIGTERM.

Prints one line, ``{"listening": "http://127.0.0.1:PORT"}``, when it answers.
"""

import argparse
import asyncio
import csv
import gc
from pathlib import Path

from aiohttp import web

from loadtest.testbed.controlplane.process import announce, until_terminated
from loadtest.testbed.standins.apiserver.admission import User
from loadtest.testbed.standins.apiserver.server import ApiServer, Settings


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(
        prog="python -m loadtest.testbed.standins.apiserver", description=__doc__
    )
    parser.add_argument("--port", type=int, default=0, help="0 lets the system choose")
    parser.add_argument("--token-auth-file", type=Path, help="CSV: token,user,uid,groups")
    parser.add_argument("--webhook-token-file", type=Path, help="what webhooks are shown")
    parser.add_argument("--bookmark-seconds", type=float, default=60.0)
    parser.add_argument("--watch-buffer", type=int, default=Settings().watch_buffer)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--population", type=Path, help="objects that are there from the beginning")
    arguments = parser.parse_args()
    settings = Settings(
        tokens=read_tokens(arguments.token_auth_file) if arguments.token_auth_file else {},
        webhook_token=_text(arguments.webhook_token_file),
        bookmark_every=arguments.bookmark_seconds,
        watch_buffer=arguments.watch_buffer,
        seed=arguments.seed,
    )
    gc.set_threshold(100_000, 50, 50)  # the store keeps bytes: there are no cycles to find
    asyncio.run(serve(settings, arguments.port, arguments.population))


def read_tokens(path: Path) -> dict[str, User]:
    """Read kube-apiserver's static token file."""
    with path.open(newline="") as file:
        return {
            token: User(name, uid, (*_groups(columns), "system:authenticated"))
            for token, name, uid, *columns in csv.reader(file)
        }


def _text(path: Path | None) -> str:
    return "" if path is None else path.read_text().strip()


def _groups(columns: list[str]) -> list[str]:
    return [group.strip() for group in ",".join(columns).split(",") if group.strip()]


async def serve(settings: Settings, port: int, population: Path | None = None) -> None:
    """Serve on 127.0.0.1 until the process is asked to end."""
    server = ApiServer(settings)
    if population is not None:
        server.populate(population)
    runner = web.ServerRunner(web.Server(server.handle, handler_cancellation=True))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024)
    await site.start()
    announce(runner)
    await until_terminated()
    await server.close()
    await runner.cleanup()


if __name__ == "__main__":
    main()
