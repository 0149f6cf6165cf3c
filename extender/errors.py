"""What the extender's HTTP edge can refuse, each with the status it answers with."""


class ExtenderError(Exception):
    """Base of the errors of this package."""


class MalformedCall(ExtenderError):
    """The body is not what the wire says (HTTP 400)."""


class TooLarge(ExtenderError):
    """The body is longer than ``bodyLimitBytes`` (HTTP 413)."""


class NotReady(ExtenderError):
    """The cluster has not been listed yet, so every answer would be a guess (HTTP 503)."""


class NamespaceUnseen(ExtenderError):
    """Labels decide whether a pod is Muster's, of a namespace that no watch has shown yet."""

    def __init__(self, namespace: str) -> None:
        super().__init__(f"namespace {namespace} has not been seen yet")
        self.namespace = namespace


class Deposed(ExtenderError):
    """This replica led and may not any more, or cannot take part; the process must end."""
