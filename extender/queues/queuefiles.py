"""A text in a ConfigMap that describes queues, as the objects of other projects do.

A text that describes nothing, as it is no YAML, leaves the queues of the one before it: gangs that
wait in them must not lose them by a typing error. What is wrong is logged when it changes: a
ConfigMap has no status that could say it.
"""

import logging
from dataclasses import replace

from extender.config.queuefiles import YuniKornQueuesConfig
from extender.queues.queueobjects import QueueObjects
from muster.kube import wire
from muster.kube.reviews import CONFIG_MAPS, PublishedConfig
from muster.workloads.queues.reading import QueueReading, as_obeyed, created_at
from muster.workloads.queues.yunikorn import queues_yaml

log = logging.getLogger(__name__)


class WatchedQueueFile:
    """Applies the ConfigMap with YuniKorn's queues to the model."""

    def __init__(
        self, objects: QueueObjects, config: YuniKornQueuesConfig, *, makes_room: bool = False
    ) -> None:
        """``makes_room``: whether gangs of these queues give way."""
        self._objects = objects
        self._makes_room = makes_room
        self._key = config.key
        self._kept = QueueReading()
        self._told: tuple[str, ...] = ()

    def seen(self, found: PublishedConfig) -> None:
        """Apply the ConfigMap as it is now."""
        reading = self._reading(found)
        if reading.problems and not reading.specs:
            reading = replace(self._kept, problems=reading.problems, unobeyed=reading.unobeyed)
        self._kept = reading
        self._tell(found.metadata, reading)
        self._objects.seen(str(CONFIG_MAPS), found.metadata, reading)

    def gone(self, meta: wire.ObjectMeta) -> None:
        """Forget the queues of a deleted ConfigMap."""
        self._kept, self._told = QueueReading(), ()
        self._objects.gone(str(CONFIG_MAPS), meta)

    def _reading(self, found: PublishedConfig) -> QueueReading:
        text = found.data.get(self._key)
        if text is None:
            keys = ", ".join(sorted(found.data)) or "none"
            return QueueReading(problems=(f"data: has no key {self._key}; its keys: {keys}",))
        reading = queues_yaml(text, created_at(found.metadata))
        return as_obeyed(reading, makes_room=self._makes_room)

    def _tell(self, meta: wire.ObjectMeta, reading: QueueReading) -> None:
        lines = (*reading.problems, *reading.unobeyed)
        if lines and lines != self._told:
            place = f"{meta.namespace}/{meta.name}"
            log.warning("queues of a ConfigMap", extra={"configmap": place, "lines": list(lines)})
        self._told = lines
