"""Watch events as a careless network of caches would hand them on.

Within a window of events each one comes twice, and events of different objects change places.
The API's promises hold: one object's events come in their order, and a bookmark, from
which a watch may be resumed, comes after all that came before it.
"""

import json
import random
from collections import deque
from collections.abc import Iterator


class Muddle:
    """``doubled`` and ``moved`` count the events that came twice and the ones out of order."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.doubled = 0
        self.moved = 0

    def window(self, lines: list[bytes]) -> list[bytes]:
        """Return the lines of a window as they are handed on; each ends with a newline."""
        out: list[bytes] = []
        between: list[tuple[str, bytes]] = []
        for line in lines:
            event = json.loads(line)
            if event["type"] in ("BOOKMARK", "ERROR"):
                out += [*self._muddled(between), line]
                between = []
            else:
                between.append((event["object"]["metadata"]["uid"], line))
        return [*out, *self._muddled(between)]

    def _muddled(self, events: list[tuple[str, bytes]]) -> list[bytes]:
        queues: dict[str, deque[bytes]] = {}
        for uid, line in events:
            queues.setdefault(uid, deque()).extend((line, line))
        out = list(self._drawn(queues))
        self.doubled += len(events)
        first = list(dict.fromkeys(out))
        self.moved += sum(one != line for one, (_, line) in zip(first, events, strict=False))
        return out

    def _drawn(self, queues: dict[str, deque[bytes]]) -> Iterator[bytes]:
        while queues:
            uid = self._random.choice(list(queues))
            yield queues[uid].popleft()
            if not queues[uid]:
                del queues[uid]
