"""From an object of the API server, or a manifest, to a policy of its dialect."""

from typing import Final

import msgspec

from muster.injection.overrides.karmada import reader as karmada
from muster.injection.overrides.kubeadmiral import reader as kubeadmiral
from muster.injection.overrides.policy import (
    GROUPS,
    Broken,
    OverridePolicy,
    PolicyDialect,
    PolicyName,
)
from muster.kube import wire

KINDS: Final = frozenset({"OverridePolicy", "ClusterOverridePolicy"})
_READERS: Final = {PolicyDialect.KUBEADMIRAL: kubeadmiral.read, PolicyDialect.KARMADA: karmada.read}


class PolicyObject(wire.Wire, frozen=True):
    """An object of either dialect as a list or a watch gives it, its spec not read yet."""

    api_version: str = ""
    kind: str = ""
    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")


_DECODER: Final = msgspec.json.Decoder(PolicyObject)


def read(data: bytes | msgspec.Raw) -> OverridePolicy | Broken | None:
    """Read a policy from JSON; see ``policy_of``.

    Raises ``msgspec.MsgspecError`` for what is no object at all.
    """
    try:
        found = _DECODER.decode(data)
    except RecursionError as error:
        raise msgspec.DecodeError(f"object is nested too deeply: {error}") from error
    return policy_of(found)


def policy_of(found: PolicyObject) -> OverridePolicy | Broken | None:
    """Return the policy; ``Broken`` where its spec is wrong, ``None`` for another kind's object."""
    dialect = GROUPS.get(found.api_version)
    if dialect is None or found.kind not in KINDS:
        return None
    namespace = found.metadata.namespace if found.kind == "OverridePolicy" else ""
    name = PolicyName(dialect, namespace, found.metadata.name)
    try:
        return _READERS[dialect](name, found.spec)
    except (msgspec.MsgspecError, RecursionError) as error:
        return Broken(name, f"spec cannot be read: {error}")
