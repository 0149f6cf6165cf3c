"""Events on objects whose templates were let in without what Muster adds.

A warning reaches the person or program that made the object; who later looks for the reason why a
queue counts too little finds the Event in the object's namespace. On creation most objects have no
UID yet, so the Event names them by kind, namespace and name.
"""

import logging
from typing import Final

import msgspec

from muster.kube import wire
from muster.kube.writing.events import EventRecorder, Regarding
from webhook.review.wire import UNREADABLE, AdmissionRequest

REASON: Final = "TemplatesNotCompleted"
_ACTION: Final = "CompleteTemplates"
_METADATA: Final = msgspec.json.Decoder(wire.PartialObject)
_log = logging.getLogger(__name__)


class TemplateReporter:
    """Records through ``recorder``, whose ``run`` is a task of its own."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def report(self, request: AdmissionRequest, why: str) -> None:
        """Record why the templates of an object are as its author wrote them."""
        about = _regarding(request)
        self._recorder.record(about, REASON, why, action=_ACTION, warning=True)
        path = f"{about.kind} {about.namespace}/{about.name}"
        _log.warning("templates not completed", extra={"object": path, "problem": why})


def _regarding(request: AdmissionRequest) -> Regarding:
    """Return the object; one that is still to be named, by the beginning of its name."""
    kind, meta = request.kind, _metadata(request)
    api_version = f"{kind.group}/{kind.version}" if kind.group else kind.version
    name = request.name or meta.name or meta.generate_name.rstrip("-.") or kind.kind.lower()
    return Regarding(api_version, kind.kind, request.namespace, name, meta.uid)


def _metadata(request: AdmissionRequest) -> wire.ObjectMeta:
    try:
        return _METADATA.decode(request.object).metadata
    except UNREADABLE:
        return wire.ObjectMeta()
