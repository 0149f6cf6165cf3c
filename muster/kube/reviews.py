"""Who a token belongs to and what its owner may do, by reviews that the API server answers.

::

    bearer token ──TokenReview──► user, groups ──SubjectAccessReview──► yes or no
                        └── not authenticated, or made for another audience: no user

Both are POSTs that store nothing. How tokens are signed (ServiceAccount keys, OIDC, a webhook) and
how users are authorised (RBAC, a cloud's IAM) only the API server knows.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from muster.kube.client import KubeClient
from muster.kube.errors import DecodeError, NotFound
from muster.kube.resources import Resource
from muster.kube.wire import ObjectMeta, Wire

TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105  a path
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

_PUBLISHED: Final = "extension-apiserver-authentication"

T = TypeVar("T")


class PublishedConfig(Wire, frozen=True):
    """core/v1 ConfigMap, as far as it is read."""

    metadata: ObjectMeta
    data: dict[str, str] = msgspec.field(default_factory=dict)


CONFIG_MAPS: Final = Resource("", "v1", "configmaps", PublishedConfig)


class UserInfo(Wire, frozen=True):
    """authentication/v1 UserInfo."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class _TokenStatus(Wire, frozen=True):
    authenticated: bool = False
    user: UserInfo = UserInfo()
    audiences: tuple[str, ...] = ()


class _TokenReview(Wire, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(Wire, frozen=True):
    allowed: bool = False


class _AccessReview(Wire, frozen=True):
    status: _AccessStatus = _AccessStatus()


async def owner_of(client: KubeClient, token: str, audiences: Sequence[str]) -> UserInfo | None:
    """Return the owner of ``token``; None if it has none, or if it is for another audience.

    ``audiences``: it must have been made for one of them; empty: for the API server itself.
    Raises ``KubeError`` where the API server cannot be asked.
    """
    spec = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
    answer = await client.ask(TOKEN_REVIEWS, body)
    status = _read(answer, _TokenReview).status
    # A server without support for audiences authenticates the token and names no audience.
    meant = not audiences or not set(audiences).isdisjoint(status.audiences)
    return status.user if status.authenticated and status.user.username and meant else None


async def may(client: KubeClient, user: UserInfo, verb: str, path: str) -> bool:
    """Return whether ``user`` may ``verb`` the URL ``path``, which is not the path of a resource.

    Raises ``KubeError`` where the API server cannot be asked.
    """
    return await _reviewed(client, user, {"nonResourceAttributes": {"verb": verb, "path": path}})


async def may_with_pods(
    client: KubeClient, user: UserInfo, verb: str, namespace: str, name: str = ""
) -> bool:
    """Return whether ``user`` may ``verb`` pods of a namespace, or the one called ``name``.

    Raises ``KubeError`` where the API server cannot be asked.
    """
    pods = {"verb": verb, "resource": "pods", "namespace": namespace, "name": name}
    return await _reviewed(client, user, {"resourceAttributes": pods})


async def _reviewed(client: KubeClient, user: UserInfo, about: Mapping[str, object]) -> bool:
    spec = {
        "user": user.username,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": user.extra,
        **about,
    }
    kind = "SubjectAccessReview"
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    return _read(await client.ask(ACCESS_REVIEWS, body), _AccessReview).status.allowed


async def client_authorities(client: KubeClient) -> str:
    """Return the CAs of the cluster's client certificates as PEM, "" where it publishes none.

    kube-apiserver publishes them for extension API servers. Raises ``KubeError``.
    """
    try:
        found = await client.get(CONFIG_MAPS, _PUBLISHED, namespace="kube-system")
    except NotFound:
        return ""
    return found.data.get("client-ca-file", "")


def _read(answer: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"{kind.__name__.lstrip('_')}: {error}") from error
