"""Calls to an extender, byte for byte in the shape that kube-scheduler sends.

The top level is PascalCase in the order of the Go structs, because those carry no json
tags (k8s.io/kube-scheduler/extender/v1); absent pointers are ``null``.
"""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from loadtest.testbed.client.wirejson import JsonObject, items_at, mapping_at
from loadtest.testbed.standins.scheduler.config import ExtenderConfig
from loadtest.testbed.standins.scheduler.objects import NodeInfo, PodInfo


class ExtenderError(Exception):
    """The call failed, or the extender said so."""


@dataclass(frozen=True, slots=True)
class FilterResult:
    """Nodes left, and why others are out; ``unresolvable`` ones never become candidates."""

    nodes: list[NodeInfo]
    failed: dict[str, str]
    unresolvable: dict[str, str]


@dataclass(frozen=True, slots=True)
class Victims:
    """Pods that would have to go from a node."""

    pods: list[PodInfo]
    pdb_violations: int = 0


class Extender:
    """One configured extender."""

    def __init__(self, config: ExtenderConfig, session: aiohttp.ClientSession) -> None:
        self.config = config
        self._session = session
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        self._ssl = _context(config)

    @property
    def is_filter(self) -> bool:
        """Whether it filters."""
        return bool(self.config.filter_verb)

    @property
    def is_prioritizer(self) -> bool:
        """Whether it scores."""
        return bool(self.config.prioritize_verb)

    @property
    def is_binder(self) -> bool:
        """Whether it binds."""
        return bool(self.config.bind_verb)

    @property
    def is_preemptor(self) -> bool:
        """Whether it wants a say in preemption."""
        return bool(self.config.preempt_verb)

    def interested_in(self, pod: PodInfo) -> bool:
        """Return whether a container of the pod names a managed resource."""
        if not self._managed:
            return True
        return any(
            self._managed & (mapping_at(container, "resources", part).keys())
            for kind in ("containers", "initContainers")
            for container in items_at(pod.raw, "spec", kind)
            for part in ("requests", "limits")
        )

    async def filter(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> FilterResult:
        """Ask which of the nodes are left; raises ``ExtenderError``."""
        reply = await self._send(self.config.filter_verb, self._arguments(pod, nodes))
        result = _fold(reply)
        if result.get("error"):
            raise ExtenderError(result["error"])
        by_name = {node.name: node for node in nodes}
        return FilterResult(
            nodes=[self._known(by_name, name) for name in self._names(result)],
            failed=result.get("failednodes") or {},
            unresolvable=result.get("failedandunresolvablenodes") or {},
        )

    def _names(self, result: JsonObject) -> list[str]:
        if self.config.node_cache_capable and result.get("nodenames") is not None:
            return list(result["nodenames"])
        items = (result.get("nodes") or {}).get("items") or []
        return [item["metadata"]["name"] for item in items]

    def _known(self, by_name: Mapping[str, NodeInfo], name: str) -> NodeInfo:
        if name not in by_name:
            message = f"extender {self.config.url_prefix!r} claims a filtered node {name!r}"
            raise ExtenderError(f"{message} which is not found in the input node list")
        return by_name[name]

    async def prioritize(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> dict[str, int]:
        """Ask for scores; returns node → weighted score. Raises ``ExtenderError``."""
        reply = await self._send(self.config.prioritize_verb, self._arguments(pod, nodes))
        if not isinstance(reply, list):
            raise ExtenderError("prioritize: want an array")
        scores: dict[str, int] = {}
        for entry in reply:
            folded = _fold(entry)
            if not isinstance(folded.get("score"), int):
                raise ExtenderError("prioritize: a score is not a whole number")
            scores[folded["host"]] = folded["score"] * self.config.weight
        return scores

    async def preempt(
        self, pod: PodInfo, candidates: Mapping[str, Victims], known: Mapping[str, NodeInfo]
    ) -> dict[str, Victims]:
        """Ask which candidates may be used; raises ``ExtenderError``."""
        body = self._preemption_arguments(pod, candidates)
        reply = _fold(await self._send(self.config.preempt_verb, body))
        answer: dict[str, Victims] = {}
        for name, victims in (reply.get("nodenametometavictims") or {}).items():
            if name not in known:
                raise ExtenderError(f"preempt: node {name!r} is not known")
            answer[name] = _resolve(known[name], _fold(victims))
        return answer

    async def bind(self, pod: PodInfo, node: str) -> None:
        """Let the extender bind; raises ``ExtenderError``."""
        body = {
            "PodName": pod.name,
            "PodNamespace": pod.namespace,
            "PodUID": pod.uid,
            "Node": node,
        }
        reply = _fold(await self._send(self.config.bind_verb, body))
        if reply.get("error"):
            raise ExtenderError(reply["error"])

    def _arguments(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> JsonObject:
        if self.config.node_cache_capable:
            return {"Pod": pod.raw, "Nodes": None, "NodeNames": [node.name for node in nodes]}
        items = {"metadata": {}, "items": [node.raw for node in nodes]}
        return {"Pod": pod.raw, "Nodes": items, "NodeNames": None}

    def _preemption_arguments(self, pod: PodInfo, candidates: Mapping[str, Victims]) -> JsonObject:
        if self.config.node_cache_capable:
            meta = {
                name: {
                    "Pods": [{"UID": victim.uid} for victim in victims.pods],
                    "NumPDBViolations": victims.pdb_violations,
                }
                for name, victims in candidates.items()
            }
            return {"Pod": pod.raw, "NodeNameToVictims": None, "NodeNameToMetaVictims": meta}
        full = {
            name: {
                "Pods": [victim.raw for victim in victims.pods],
                "NumPDBViolations": victims.pdb_violations,
            }
            for name, victims in candidates.items()
        }
        return {"Pod": pod.raw, "NodeNameToVictims": full, "NodeNameToMetaVictims": None}

    async def _send(self, verb: str, body: JsonObject) -> Any:
        url = f"{self.config.url_prefix.rstrip('/')}/{verb}"
        timeout = aiohttp.ClientTimeout(total=self.config.timeout)
        try:
            async with self._session.post(
                url,
                data=orjson.dumps(body),
                headers={"Content-Type": "application/json"},
                timeout=timeout,
                ssl=self._ssl,
            ) as reply:
                if reply.status != 200:
                    raise ExtenderError(
                        f"failed {verb} with extender at URL {url}, code {reply.status}"
                    )
                return orjson.loads(await reply.read())
        except (aiohttp.ClientError, TimeoutError, orjson.JSONDecodeError) as error:
            raise ExtenderError(f"Post {url!r}: {type(error).__name__}: {error}") from error


def _fold(reply: Any) -> JsonObject:
    """Lower the case of the keys: Go's decoder matches them without regard to case."""
    if not isinstance(reply, dict):
        raise ExtenderError("want a JSON object")
    return {str(key).lower(): value for key, value in reply.items()}


def _resolve(node: NodeInfo, victims: JsonObject) -> Victims:
    """Turn UIDs into pods; one that is not on the node fails the whole preemption."""
    pods = []
    for meta in victims.get("pods") or []:
        uid = _fold(meta).get("uid")
        if uid not in node.pods:
            raise ExtenderError(f"preempt: pod {uid!r} is not on node {node.name!r}")
        pods.append(node.pods[uid])
    return Victims(pods, victims.get("numpdbviolations") or 0)


def _context(config: ExtenderConfig) -> ssl.SSLContext | bool:
    """Trust what the configuration says; HTTPS without a CA is taken unverified, as upstream."""
    if not config.enable_https:
        return True
    tls = config.tls_config
    if tls is None or tls.insecure or not tls.ca_file:
        return False
    return ssl.create_default_context(cafile=tls.ca_file)
