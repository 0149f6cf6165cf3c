"""The section ``admission``: the webhook, and what it gives, to tell pods that slipped past it."""

import msgspec


class Admission(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """``webhook``: name of its MutatingWebhookConfiguration; while there is none, none slips past.

    ``cluster_profile``, ``fabrics``: the files of the webhook's section ``injection``; without
    the first the ClusterProfile and FabricProfiles of the cluster count, if there are any.
    ``injects``: false where the webhook has no such section, or its mode is shadow.
    """

    webhook: str = "muster-webhook"
    injects: bool = True
    cluster_profile: str | None = None
    fabrics: tuple[str, ...] = ()
