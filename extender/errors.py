"""The errors of the extender; for those of HTTP calls, the status of the answer."""


class ExtenderError(Exception):
    """Base of the errors of this package."""


class MalformedCall(ExtenderError):
    """The body does not match the wire format (HTTP 400)."""


class TooLarge(ExtenderError):
    """The body is longer than ``bodyLimitBytes`` (HTTP 413)."""


class NotReady(ExtenderError):
    """The cluster has not been listed yet, so every answer would be a guess (HTTP 503)."""


class NamespaceUnseen(ExtenderError):
    """Whether a pod is managed depends on labels of a namespace that no watch has shown yet."""

    def __init__(self, namespace: str) -> None:
        super().__init__(f"namespace {namespace} has not been seen yet")
        self.namespace = namespace


class Deposed(ExtenderError):
    """This replica lost the leadership, or cannot take part in elections; the process must end."""
