"""Queues as their objects describe them, with nothing charged: what no waiting would change.

For whoever asks before there is a gang: a name that no queue has, a queue that the namespace may
not use, that is closed, or that can never hold so much. The words are those of the planner
(``muster.queueing.admission.refusal``).
"""

from collections.abc import Mapping

from muster.cluster.events import QueueGone, QueueUpserted
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.charges import QueueCharges
from muster.cluster.quota.flavors import choices
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.admission.refusal import barred, refusal, unknown


class QueueDirectory:
    """All queues; nobody uses any of them."""

    def __init__(self) -> None:
        """Begin without queues."""
        self._charges = QueueCharges()
        self._queues: dict[QueueName, QueueUpserted] = {}

    def take(self, event: QueueUpserted | QueueGone) -> None:
        """Apply a change of a queue."""
        if isinstance(event, QueueGone):
            self._queues.pop(event.name, None)
            self._charges.remove(event.name)
            return
        self._queues[event.spec.name] = event
        self._charges.put(event.spec, event.spellings, event.groups)

    def problem(
        self, user: QueueUser, labels: Mapping[str, str] | None, request: Mapping[str, int]
    ) -> str:
        """Return why a queue does not admit a request as things are, "" where it may.

        ``labels``: of the namespace, ``None``: not known. ``request``: by resource, in the units of
        the model. Whoever names no queue is free, and everybody is where there are no queues.
        """
        if not self._queues or not user.text:
            return ""
        aliases = self._charges.aliases
        queue = aliases.resolve(user)
        if queue is None:
            return unknown(user.text, user.namespace, aliases.texts(user))
        found = self._queues[queue]
        if found.is_elsewhere:
            return ""
        required = () if labels is None else found.namespaces
        return barred(user, queue, aliases, required, labels or {}) or self._refusal(queue, request)

    def _refusal(self, queue: QueueName, request: Mapping[str, int]) -> str:
        """Return why no flavor grants a request, in the words of the first."""
        groups = self._charges.groups(queue)
        refusals = [refusal(self._charges, queue, request, choice) for choice in choices(groups)]
        return refusals[0] if all(refusals) else ""
