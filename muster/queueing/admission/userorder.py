"""Queues whose gangs go by what those used lately who name the queue.

::

    queue    user         key     gangs, by priority and age
    kueue/a  team/main    6.0     1 2 3
             lab/main     8.0           4 5

Keys are computed anew after each admission: the gang that just got its place counts.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.averageuse.userhistory import UserCharges, UserHistory


class UserOrder:
    """What orders the gangs of such queues."""

    def __init__(self, history: UserHistory, charges: UserCharges) -> None:
        """Begin at the beginning of time."""
        self._history = history
        self._charges = charges
        #: seconds since the epoch, as of which averages are read
        self.now = 0.0

    def goes_by_users(self, queue: QueueName) -> bool:
        """Return whether a queue's gangs go by what its users used."""
        node = self._charges.tree.find(queue)
        return node is not None and node.spec.goes_by_users

    def keys(self, users: Mapping[tuple[QueueName, QueueUser], int]) -> NDArray[np.float64]:
        """Return float64[users] by their numbers, 0 and up: the least goes first."""
        found = np.zeros(len(users))
        for queue in {queue for queue, _ in users}:
            named = [user for of, user in users if of == queue]
            for user, key in zip(named, self._history.keys(named, queue, self.now), strict=True):
                found[users[queue, user]] = key
        return found

    def keys_of(self, users: Iterable[QueueUser], queue: QueueName) -> dict[QueueUser, float]:
        """Return what orders the gangs of some users of a queue: the least goes first."""
        named = list(users)
        return dict(zip(named, self._history.keys(named, queue, self.now), strict=True))

    def key(self, user: QueueUser, queue: QueueName) -> float:
        """Return what orders the gangs of one user."""
        return next(iter(self._history.keys([user], queue, self.now)))
