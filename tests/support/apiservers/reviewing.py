"""A simulated API server that also answers who owns a token and what the owner may do."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from support.apiservers.apifaults import FaultyServer

from extender.access.callerrules import NODE_CLAIM
from muster.kube.reviews import ACCESS_REVIEWS, TOKEN_REVIEWS

JSON = dict[str, Any]
PUBLISHED = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


@dataclass
class Account:
    """The owner of a token, what it was made for, and what RBAC lets the owner get."""

    user: str
    groups: list[str] = field(default_factory=list)
    audiences: list[str] = field(default_factory=list)  # empty: the API server's own
    may_get: list[str] = field(default_factory=list)
    sees: list[str] = field(default_factory=list)  # namespaces whose pods it may get and list
    node: str = ""  # what the token is bound to; "": it names none


class ReviewingServer(FaultyServer):
    """``accounts``: token → its owner. ``open``: cleared, reviews are not answered."""

    def __init__(self, accounts: dict[str, Account]) -> None:
        super().__init__()
        self.accounts = accounts
        self.open = asyncio.Event()
        self.open.set()
        self.reviews: list[JSON] = []
        self.client_ca = ""  # PEM of who signs the cluster's client certificates, "": none is told

    async def handle(self, raw: web.BaseRequest) -> web.StreamResponse:
        """Answer a review; everything else as the simulated server does."""
        if raw.path == PUBLISHED and self.client_ca:
            found = {"metadata": {"name": "x"}, "data": {"client-ca-file": self.client_ca}}
            return web.json_response(found)
        failing = any(fault.left > 0 and fault.path in raw.path for fault in self.faults)
        if raw.path not in (TOKEN_REVIEWS, ACCESS_REVIEWS) or failing:
            return await super().handle(raw)
        body: JSON = await raw.json()
        self.reviews.append(body)
        await self.open.wait()
        review = self._token if raw.path == TOKEN_REVIEWS else self._access
        return web.json_response({**body, "status": review(body["spec"])}, status=201)

    def _token(self, spec: JSON) -> JSON:
        account = self.accounts.get(spec["token"])
        asked = spec.get("audiences", [])
        if account is None or (asked and set(asked).isdisjoint(account.audiences)):
            return {"authenticated": False, "error": "invalid bearer token"}
        user: JSON = {"username": account.user, "groups": account.groups}
        if account.node:
            user["extra"] = {NODE_CLAIM: [account.node]}
        known = [audience for audience in account.audiences if audience in asked]
        return {"authenticated": True, "user": user, "audiences": known}

    def _access(self, spec: JSON) -> JSON:
        named = [a for a in self.accounts.values() if a.user == spec["user"]]
        if "resourceAttributes" in spec:
            asked = spec["resourceAttributes"]
            assert asked["resource"] == "pods"
            assert asked["verb"] in ("get", "list")
            return {"allowed": any(asked["namespace"] in account.sees for account in named)}
        path = spec["nonResourceAttributes"]["path"]
        return {"allowed": any(path in account.may_get for account in named)}
