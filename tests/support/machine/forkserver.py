"""A process that imports programs of ours once, and forks one of them on each request.

The server's side of `support.machine.launcher`, run as a script. Its arguments are the programs and
what else it imports, its stdin is a socket. Each request is a message, and so is its answer::

    {"words": […], "environment": {…}, "folder": "…"}, the log's descriptor ──►
    ◄── the child's process id, a pidfd of it, a pipe that gives its exit code at the end

The child then runs ``__main__`` as ``python -m`` does: in a session of its own, with the log as its
output. It ends with the server, and the server with the one at the other end of the socket.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import socket
import sys
import threading
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from loadtest.testbed.controlplane.programs import die_with_parent

REQUEST_BYTES: Final = 128 * 1024  # a command line and an environment


def main(programs: Sequence[str], also: Sequence[str]) -> NoReturn:
    """Import the modules, then fork for each request."""
    sys.path[0] = str(Path.cwd())  # as for `python -m`
    gc.disable()
    for module in (*(f"{name}.__main__" for name in programs), *also):
        importlib.import_module(module)
    for name in programs:
        del sys.modules[f"{name}.__main__"]  # runs anew in the child, as the main module
    gc.freeze()  # what is walked through is copied
    gc.enable()
    with socket.socket(fileno=os.dup(0)) as control:
        request = _serve(control)
    _run(request)


def _serve(control: socket.socket) -> dict[str, Any]:
    """Fork for each request and collect what has ended. Returns in the child, with its request."""
    arm, awaited = die_with_parent(), select.poll()
    awaited.register(control, select.POLLIN)
    # By pidfd: the process id, and the pipe for the exit code.
    children: dict[int, tuple[int, int]] = {}
    while True:
        for fd, _ in awaited.poll():
            if fd in children:
                awaited.unregister(fd)
                _collect(fd, *children.pop(fd))
                continue
            data, logs, _, _ = socket.recv_fds(control, REQUEST_BYTES, 1)
            if not data:
                os._exit(0)
            end, code = os.pipe()
            pid = os.fork()
            if pid == 0:
                if arm is not None:
                    arm()
                ends = (end for _, end in children.values())
                _detach(*logs, [end, code, *children, *ends])
                return json.loads(data)
            pidfd = os.pidfd_open(pid)
            socket.send_fds(control, [str(pid).encode()], [pidfd, end])
            for each in (*logs, end):
                os.close(each)
            awaited.register(pidfd, select.POLLIN)
            children[pidfd] = pid, code


def _collect(pidfd: int, pid: int, code: int) -> None:
    """Collect a child that has ended, and say its exit code."""
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):  # the reader has closed it
        os.write(code, str(os.waitstatus_to_exitcode(status)).encode())
    os.close(code)
    os.close(pidfd)


def _detach(log: int, others: Iterable[int]) -> None:
    """Leave the server's session and files."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for ours, standard in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(ours, standard)
    for each in (nothing, log, *others):
        os.close(each)


def _run(request: dict[str, Any]) -> NoReturn:
    """Run the program to its end."""
    module, *arguments = request["words"]
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.path[0] = request["folder"]
    sys.argv = [module, *arguments]
    os._exit(_exit_code(module))


def _exit_code(module: str) -> int:
    """Run a module to its end and return its exit code.

    The interpreter's own end is left out: it would go through all that was imported and so copy it.
    """
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:  # noqa: BLE001  as the interpreter does
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    main(*(words.split() for words in sys.argv[1:]))
