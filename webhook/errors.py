"""The errors that the webhook itself raises."""


class WebhookError(Exception):
    """Base of the webhook's errors; the text says what to mend."""


class MalformedReview(WebhookError):
    """A request is no AdmissionReview that can be answered: HTTP 400."""


class CertificateError(WebhookError):
    """Certificates cannot be made, stored or used."""
