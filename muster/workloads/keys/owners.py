"""The controller of an object, by group and kind."""

from muster.kube import wire


def owner(meta: wire.ObjectMeta, group: str, kind: str) -> str:
    """Return the name of the controller of that group and kind, or "".

    The group matters: Volcano has a kind Job too.
    """
    for reference in meta.owner_references:
        same_group = reference.api_version.partition("/")[0] == group
        if reference.controller and reference.kind == kind and same_group:
            return reference.name
    return ""
