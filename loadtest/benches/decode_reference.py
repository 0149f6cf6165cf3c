"""``python -m loadtest.benches.decode_reference``: how extenders usually answer ``filter``.

The yardstick of ``muster bench filter``: decode the whole body, look every name up among
the known nodes, judge each node, and send back the names that pass and a reason for each
that does not. Written with the same server library and the fastest general JSON codec, so
what differs from Muster is the work and not the tools. Never part of the product.
"""

import argparse
import asyncio
import time
from typing import Final

import numpy as np
import orjson
from aiohttp import web

from loadtest.testbed.controlplane.process import announce, until_terminated

PLANNED_NAME: Final = "X-Planned-Node"  # the benchmark says which node the pod is planned on
BODY_LIMIT_BYTES: Final = 64 * 1024 * 1024


def host_name(index: int) -> str:
    """Return a node name of 23 characters, as long as those of real fleets."""
    return f"gpu-host-{index:06d}.block-0"


class Reference:
    """Knows ``count`` nodes by name, with eight free devices each."""

    def __init__(self, names: list[str]) -> None:
        self._rows = {name: row for row, name in enumerate(names)}
        self._free = np.full(len(names), 8, dtype=np.int64)

    async def filter(self, request: web.Request) -> web.Response:
        """Decode, map, judge every node, answer for every node."""
        began = time.perf_counter()
        args = orjson.loads(await request.read())
        names = args["NodeNames"]
        rows = np.fromiter((self._rows.get(name, -1) for name in names), np.int64, len(names))
        wanted = sum(
            int(container["resources"].get("requests", {}).get("nvidia.com/gpu", 0))
            for container in args["Pod"]["spec"]["containers"]
        )
        fits = (rows >= 0) & (self._free[rows] >= wanted)
        planned = request.headers[PLANNED_NAME]
        fitting = [
            name for name, ok in zip(names, fits.tolist(), strict=True) if ok and name == planned
        ]
        failed = {name: "planned elsewhere" for name in names if name != planned}
        body = orjson.dumps(
            {
                "Nodes": None,
                "NodeNames": fitting,
                "FailedNodes": failed,
                "FailedAndUnresolvableNodes": {},
                "Error": "",
            }
        )
        took_ms = (time.perf_counter() - began) * 1000
        headers = {"Server-Timing": f"app;dur={took_ms:.4f}"}
        return web.Response(body=body, content_type="application/json", headers=headers)


async def _ready(_request: web.Request) -> web.Response:
    return web.Response(text="ok")


async def serve(names: list[str], port: int) -> None:
    """Serve on loopback until the process is asked to end."""
    app = web.Application(client_max_size=BODY_LIMIT_BYTES)
    app.add_routes(
        [web.post("/v1/extender/filter", Reference(names).filter), web.get("/readyz", _ready)]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    announce(runner)
    await until_terminated()
    await runner.cleanup()


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.benches.decode_reference")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--port", type=int, default=0, help="0 lets the system choose")
    arguments = parser.parse_args()
    names = [host_name(index) for index in range(arguments.nodes)]
    asyncio.run(serve(names, arguments.port))


if __name__ == "__main__":
    main()
