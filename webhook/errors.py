"""The errors that the webhook itself raises."""

from typing import Final

_MALFORMED_CHARS: Final = 512  # errors of decoders quote values, and those may be megabytes


class WebhookError(Exception):
    """Base of the webhook's errors; the text says what to mend."""


class MalformedReview(WebhookError):
    """A request is no AdmissionReview that can be answered: HTTP 400."""

    def __init__(self, text: str) -> None:
        super().__init__(cut(text, _MALFORMED_CHARS))


class CertificateError(WebhookError):
    """Certificates cannot be made, stored or used."""


def cut(text: str, most: int) -> str:
    """Return text of ``most`` characters at most."""
    return text if len(text) <= most else text[: most - 1] + "…"
