"""Pending managed pods by the volume claims they use: read again when a claim is bound."""

from dataclasses import dataclass, field

from muster.cluster.ids import PodUid
from muster.kube import wire

StartClaim = tuple[str, str]  # namespace, name


@dataclass(slots=True)
class ClaimUsers:
    """Pending managed pods by the volume claims they use."""

    _pods: dict[PodUid, wire.Pod] = field(default_factory=dict)
    _users: dict[StartClaim, set[PodUid]] = field(default_factory=dict)

    def put(self, uid: PodUid, pod: wire.Pod) -> None:
        """Store a pod if it uses any claim."""
        claims = _claims(pod)
        if claims:
            self._pods[uid] = pod
            for claim in claims:
                self._users.setdefault(claim, set()).add(uid)

    def drop(self, uid: PodUid) -> None:
        """Forget a pod."""
        pod = self._pods.pop(uid, None)
        for claim in () if pod is None else _claims(pod):
            users = self._users.get(claim, set())
            users.discard(uid)
            if not users:
                self._users.pop(claim, None)

    def of(self, claim: StartClaim) -> list[wire.Pod]:
        """Return the pods that use a claim."""
        return [self._pods[uid] for uid in self._users.get(claim, ())]


def _claims(pod: wire.Pod) -> set[StartClaim]:
    sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return {(pod.metadata.namespace, s.claim_name) for s in sources if s is not None}
