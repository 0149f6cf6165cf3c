"""Programs are started whole while the process that starts them is busy with gRPC."""

import asyncio
import subprocess
from contextlib import suppress

import grpc.aio
from grpc import method_handlers_generic_handler, unary_unary_rpc_method_handler

from loadtest.testbed.controlplane.programs import die_with_parent

STARTS = 60  # with gRPC's fork handlers every third child ended before its program began


async def _echo(request: bytes, _context: object) -> bytes:
    return request


async def test_no_child_is_lost_to_the_fork_handlers_of_grpc() -> None:
    server = grpc.aio.server()
    handlers = {"Echo": unary_unary_rpc_method_handler(_echo)}
    server.add_generic_rpc_handlers((method_handlers_generic_handler("test", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        echo = channel.unary_unary("/test/Echo")

        async def call_for_ever() -> None:
            while True:
                await echo(b"again")

        caller = asyncio.create_task(call_for_ever())
        said = [await asyncio.to_thread(_start_and_hear) for _ in range(STARTS)]
        caller.cancel()
        with suppress(asyncio.CancelledError):
            await caller
    await server.stop(grace=None)
    assert said == [b"begun\n"] * STARTS


def _start_and_hear() -> bytes:
    return subprocess.run(
        ["/bin/echo", "begun"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=die_with_parent(),
        check=False,
        timeout=30,
    ).stdout
