"""What a replica needs to take part in the election, made from its configuration."""

import random
import time
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from extender.config.election import LeaderElection
from extender.leadership.ownpod import Mark, PodName
from muster.kube import names
from muster.kube.client import KubeClient
from muster.kube.http.auth import Auth
from muster.kube.http.fence import Fence, monotonic
from muster.kube.http.transport import Retry, Transport
from muster.kube.leading.election import ElectionTimes
from muster.kube.leading.lease import LeaseRef
from muster.observability.configfile import ConfigError

AGENT: Final = names.EXTENDER
CONNECTIONS: Final = 4  # one request of the election at a time, the mark, and a watch


@dataclass(frozen=True, slots=True)
class Candidacy:
    """What a replica needs to take part in the election."""

    #: the pod of this replica
    pod: PodName
    #: the name of this process in the Lease
    identity: str
    lease: LeaseRef
    rules: ElectionTimes
    #: a client for the election only, without a fence
    free: KubeClient
    #: stops the writes of a replica that does not lead
    fence: Fence
    mark: Mark
    #: the clock of the fence, in seconds
    clock: Callable[[], float] = monotonic
    #: epoch seconds, for the times in the Lease
    wall: Callable[[], float] = time.time
    #: a random number in [0, 1)
    jitter: Callable[[], float] = random.random


async def stand(
    stack: AsyncExitStack, election: LeaderElection, auth: Auth, pod: PodName | None
) -> Candidacy | None:
    """Return what an election needs; None if there is no election. Raises ``ConfigError``.

    Every process has a new identity. So a process that was killed and started again waits until its
    own old lease has expired, since writes under that lease may still be in flight.
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
    """Return the User-Agent that distinguishes replicas in the API server's audit log."""
    return f"{AGENT} ({identity})"
