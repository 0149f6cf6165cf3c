"""Who reports pods as running and done: kwok, or a writer of our own.

::

    real control plane, up to 5,000 nodes ──► kwok: Leases, statuses, phases
    larger, or simulated ───────────────────► writer: phases only
"""

from contextlib import AsyncExitStack
from enum import StrEnum
from typing import Final

from loadtest.fourphase.load.spec import SpecError
from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.assets import KWOK
from loadtest.testbed.controlplane.programs import READY_TIMEOUT_S, Program
from loadtest.testbed.deployment import kwok
from loadtest.testbed.standins.kubelet import Kubelet
from loadtest.testbed.standins.simulated import Plane


class Kubelets(StrEnum):
    """See the drawing in the module's docstring."""

    WRITER = "writer"
    KWOK = "kwok"


NOTES: Final = {
    Kubelets.WRITER: (
        "No kubelet ran: a writer reported pods as Running and Succeeded, no node renewed a lease."
    ),
    Kubelets.KWOK: (
        f"kwok {KWOK.version} was the kubelet of every node: it renewed their Leases and carried "
        "pods from bound to Succeeded. No container ran."
    ),
}


def chosen(asked: str | None, *, real: bool, nodes: int) -> Kubelets:
    """Return whom a run takes: who was asked for, else kwok where it can.

    Raises ``SpecError`` where kwok cannot.
    """
    if asked is None:
        return Kubelets.KWOK if real and nodes <= kwok.MOST_NODES else Kubelets.WRITER
    if asked == Kubelets.WRITER:
        return Kubelets.WRITER
    if not real:
        raise SpecError("--kubelets kwok: only with --control-plane real; or --kubelets writer")
    if nodes > kwok.MOST_NODES:
        raise SpecError(
            f"--kubelets kwok: {nodes} nodes; it renews a Lease of each every ten seconds: give "
            f"{kwok.MOST_NODES} at most, or --kubelets writer"
        )
    return Kubelets.KWOK


async def start(
    stack: AsyncExitStack, plane: Plane, who: Kubelets, *, ready_s: float = READY_TIMEOUT_S
) -> Program | None:
    """Start the program there is; the stack ends it. Raises ``AssetError``, ``ProgramFailed``."""
    if who is Kubelets.WRITER:
        return None
    program = await kwok.program(plane.directory, plane.kubeconfig(kwok.USER))
    stack.push_async_callback(program.stop)
    program.start()
    await program.wait_ready(ready_s)
    return program


def writing(who: Kubelets, api: Api) -> Kubelet:
    """Return what the driver tells of pods that are bound, and of those that are to end."""
    return Kubelet(api, kwok.write_of) if who is Kubelets.KWOK else Kubelet(api)
