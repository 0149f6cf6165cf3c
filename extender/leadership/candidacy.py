"""Standing for election: what a replica needs to take part, made from its configuration."""

import random
import time
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from extender.config.election import LeaderElection
from extender.leadership.ownpod import Mark, PodName
from muster.kube.client import KubeClient
from muster.kube.http.auth import Auth
from muster.kube.http.fence import Fence, monotonic
from muster.kube.http.transport import Retry, Transport
from muster.kube.leading.election import ElectionTimes
from muster.kube.leading.lease import LeaseRef
from muster.observability.configfile import ConfigError

AGENT: Final = "muster-extender"
CONNECTIONS: Final = 4  # one request at a time, the mark beside it, and a watch


@dataclass(frozen=True, slots=True)
class Candidacy:
    """What a replica needs to take part in the election."""

    pod: PodName
    identity: str
    lease: LeaseRef
    rules: ElectionTimes
    #: a client of the election's own, which no fence stops
    free: KubeClient
    fence: Fence
    mark: Mark
    #: the fence's, in seconds
    clock: Callable[[], float] = monotonic
    #: for people to read
    wall: Callable[[], float] = time.time
    #: a random number in [0, 1)
    jitter: Callable[[], float] = random.random


async def stand(
    stack: AsyncExitStack, election: LeaderElection, auth: Auth, pod: PodName | None
) -> Candidacy | None:
    """Return what an election needs; None where there is none. Raises ``ConfigError``.

    The identity is new with every process: one that was killed and came back is somebody
    else, and waits for its own old lease, under which writes may still be on their way.
    """
    if not election.leader_elect:
        return None
    if pod is None:
        raise ConfigError(
            "leaderElection.leaderElect: is true, but the environment names no pod: set POD_NAME "
            "and POD_NAMESPACE (downward API), or run a single replica with --leader-elect=false"
        )
    identity = f"{pod.name}_{uuid.uuid4()}"
    retry_s, deadline_s = election.retry_period_seconds, election.renew_deadline_seconds
    transport = Transport(
        auth,
        connections=CONNECTIONS,
        timeout_s=deadline_s / 2,
        retry=Retry(attempts=1),
        user_agent=agent(identity),
    )
    return Candidacy(
        pod=pod,
        identity=identity,
        lease=LeaseRef(election.resource_namespace or pod.namespace, election.resource_name),
        rules=ElectionTimes(float(election.lease_duration_seconds), deadline_s, retry_s),
        free=await stack.enter_async_context(KubeClient(auth, transport=transport)),
        fence=Fence(write_timeout_s=election.write_timeout_seconds),
        mark=Mark(pod),
    )


def agent(identity: str) -> str:
    """Return the User-Agent that tells replicas apart in the API server's audit log."""
    return f"{AGENT} ({identity})"
