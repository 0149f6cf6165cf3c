"""The annotation that lists which devices each pod of the node has.

::

    start     annotation of the Node ──► Handshake.recall       what an earlier process wrote
    later     Handshake.given ──► text, with a new generation whenever it has changed
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deviceplugin.handshake.handshake import Handshake
from muster.kube import wire
from muster.kube.names import NODE_ALLOCATIONS
from muster.kube.translation import allocationsannotation

log = logging.getLogger(__name__)


@dataclass(slots=True)
class AllocationsNote:
    """The annotation ``muster.dev/node-allocations`` of one node."""

    handshake: Handshake
    #: whether the annotation of an earlier process has been read
    recalled: bool = False
    _generation: int = 0
    _given: Sequence[tuple[str, Mapping[str, tuple[str, ...]]]] | None = None
    _text: str = ""

    def recall(self, node: wire.Node) -> None:
        """Read, once, what this node's plugin wrote before it was restarted."""
        if self.recalled:
            return
        self.recalled = True
        text = node.metadata.annotations.get(NODE_ALLOCATIONS, "")
        if not text:
            return
        try:
            found = allocationsannotation.decode(text)
        except allocationsannotation.AllocationsError as error:
            log.warning("the Node's allocations cannot be read", extra={"error": str(error)})
            return
        self._generation, self._text = found.generation, text
        self.handshake.recall(found.pods)

    def text(self) -> str:
        """Return the annotation's text; its generation grows when the allocations change.

        While they are not all known, this is the text that the Node already has.
        """
        if not self.handshake.ready:
            return self._text
        given = self.handshake.given()
        if given != self._given or not self._generation:
            self._generation += 1
            self._given = given
            self._text = allocationsannotation.encode(self._generation, given)
        return self._text
