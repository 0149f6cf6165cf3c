"""Who may call an installed extender, by what a real API server says of their tokens.

::

    Prometheus (ServiceAccount monitoring/prometheus, RBAC: get /metrics) ──token──┐
    operator   (ServiceAccount monitoring/operator, bound to muster-reader) ─token─┤
    kube-scheduler (the certificate of `muster certificates`) ─────────────────────┼──► extender
    a pod      (ServiceAccount default/pod, no rights) ──────────────token─────────┘     │
                                                    TokenReview, SubjectAccessReview ◄───┘
"""

import asyncio
import json
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml
from cryptography.hazmat.primitives.asymmetric import ec
from support.extenders.installation import certificates
from support.extenders.jwt import private_key, signed_again
from support.extenders.realcluster import PODS
from support.machine import quickyaml
from support.machine.patience import PATIENCE_S

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import API_SERVER, ControlPlane, Options
from loadtest.testbed.controlplane.programs import Program, free_port
from loadtest.testbed.deployment.muster import RBAC
from muster.cli.main import main
from muster.kube.names import PLAN_GATE

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
MANIFESTS = Path(__file__).parents[3] / "manifests"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BIND = "/v1/extender/bind"
OURS = "muster.dev/extender"
AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
EXTENDER = "system:serviceaccount:muster-system:muster-extender"
REVIEWS = {"tokenreviews", "subjectaccessreviews"}


@dataclass
class Installed:
    plane: ControlPlane
    api: Api
    directory: Path
    audit: Path
    url: str
    narrow: str  # the URL of a second extender, for tokens made for Muster alone

    async def token(self, account: str, *audiences: str) -> str:
        """Return a token that the API server makes for NAMESPACE/NAME."""
        namespace, _, name = account.partition("/")
        spec = {"audiences": list(audiences)} if audiences else {}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        made = await self.api.create(path, {"spec": spec})
        return str(made["status"]["token"])

    async def ask(
        self,
        path: str,
        token: str = "",
        *,
        body: JSON | None = None,
        shown: bool = False,
        url: str = "",
    ) -> tuple[int, str]:
        """GET, or POST `body`; `shown`: with kube-scheduler's certificate."""
        context = ssl.create_default_context(cafile=str(self.directory / "ca.crt"))
        if shown:
            made = self.directory / "made"
            context.load_cert_chain(made / "scheduler.crt", made / "scheduler.key")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connector = aiohttp.TCPConnector(ssl=context)
        async with (
            aiohttp.ClientSession(url or self.url, connector=connector, headers=headers) as session,
            session.request("GET" if body is None else "POST", path, json=body) as reply,
        ):
            return reply.status, await reply.text()

    async def becomes(self, status: int, path: str, token: str) -> None:
        """Wait until the API server's authoriser has taken note."""
        async with asyncio.timeout(PATIENCE_S):
            while (await self.ask(path, token))[0] != status:  # noqa: ASYNC110  asked over HTTP
                await asyncio.sleep(0.1)

    async def count(self, route: str, reason: str) -> float:
        """Return how many were turned away, as Prometheus would read it."""
        _, text = await self.ask("/metrics", await self.token("monitoring/operator"))
        head = f'muster_refused_callers_total{{reason="{reason}",route="{route}"}} '
        found = [line.removeprefix(head) for line in text.splitlines() if line.startswith(head)]
        return float(found[0]) if found else 0.0

    def reviewed(self) -> list[tuple[str, int]]:
        """Return the extender's reviews and how the API server answered, from its audit log."""
        events = [json.loads(line) for line in self.audit.read_text().splitlines()]
        return [
            (event["objectRef"]["resource"], event["responseStatus"]["code"])
            for event in events
            if event["user"]["username"] == EXTENDER
            and event["stage"] == "ResponseComplete"
            and event.get("objectRef", {}).get("resource") in REVIEWS
        ]


def config(directory: Path, name: str, port: int, audiences: list[str]) -> Path:
    """The shipped configuration, and nothing is believed for longer than it takes to ask."""
    text = (MANIFESTS / "base" / "extender-config.yaml").read_text()
    made = quickyaml.load(text.replace("/etc/muster/tls", str(directory)))
    made["listen"] = {"host": "127.0.0.1", "port": port}
    made["leaderElection"] = {"leaderElect": False}
    made["callers"]["tokens"] = {"cacheSeconds": 0, "audiences": audiences}
    path = directory / f"{name}.yaml"
    path.write_text(yaml.safe_dump(made))
    return path


def readiness(url: str, ca: Path) -> Callable[[], Any]:
    async def ready() -> bool:
        """As the kubelet asks: with nothing to show."""
        return await asyncio.to_thread(main, ["probe", f"{url}/readyz", "--ca", str(ca)]) == 0

    return ready


async def accounts(api: Api) -> None:
    await api.create("/api/v1/namespaces", {"metadata": {"name": "monitoring"}})
    for account in ("monitoring/prometheus", "monitoring/operator", "default/pod", "default/gone"):
        namespace, _, name = account.partition("/")
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        await api.create(path, {"metadata": {"name": name}})
    scraper = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    await api.create(ROLES, {"metadata": {"name": "prometheus"}, "rules": [scraper]})
    reader = quickyaml.load((MANIFESTS / "rbac" / "reader.yaml").read_text())
    await api.create(ROLES, reader)
    for name, role in (("prometheus", "prometheus"), ("operator", "muster-reader")):
        group = "rbac.authorization.k8s.io"
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "monitoring"}],
        }
        await api.create(BINDINGS, binding)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installed(
    minor: Minor, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installed]:
    directory = tmp_path_factory.mktemp("callers")
    certificates(directory)
    policy, audit = directory / "policy.yaml", directory / "audit.log"
    policy.write_text(yaml.safe_dump(AUDIT_POLICY))
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={audit}")
    async with AsyncExitStack() as stack:
        options = Options(minor=minor, rbac=RBAC, api_server_flags=flags)
        plane = await stack.enter_async_context(ControlPlane(options))
        api = await stack.enter_async_context(plane.api())
        await accounts(api)
        urls = []
        for name, audiences in (("extender", []), ("narrow", [OURS])):
            port = free_port()
            urls.append(f"https://localhost:{port}")
            file = config(directory, name, port, audiences)
            command: list[str | Path] = [sys.executable, "-m", "extender", "--config", file]
            command += ["--kubeconfig", plane.kubeconfig("muster-extender")]
            ready = readiness(urls[-1], directory / "ca.crt")
            program = Program(name, command, directory=directory, ready=ready)
            program.start()
            stack.push_async_callback(program.stop)
            await program.wait_ready()
        it = Installed(plane, api, directory, audit, *urls)
        await it.becomes(200, "/metrics", await it.token("monitoring/prometheus"))
        await it.becomes(200, "/v1/gangs", await it.token("monitoring/operator"))
        yield it


async def test_prometheus_scrapes_with_its_own_token_and_sees_nothing_else(
    installed: Installed,
) -> None:
    token = await installed.token("monitoring/prometheus")
    status, text = await installed.ask("/metrics", token)
    assert status == 200
    assert "muster_refused_callers_total" in text
    status, text = await installed.ask("/v1/gangs", token)
    assert status == 403
    assert "system:serviceaccount:monitoring:prometheus" in text


async def test_whoever_is_bound_to_the_readers_role_reads_and_does_not_schedule(
    installed: Installed,
) -> None:
    token = await installed.token("monitoring/operator")
    for path in ("/metrics", "/v1/status", "/v1/gangs"):
        assert (await installed.ask(path, token))[0] == 200
    assert (await installed.ask("/v1/explain/default/none", token))[0] == 404  # no such pod
    assert (await installed.ask(BIND, token, body={}))[0] == 403


async def test_cluster_administrators_read_without_a_role_of_their_own(
    installed: Installed,
) -> None:
    assert (await installed.ask("/v1/status", installed.plane.credentials.tokens["admin"]))[
        0
    ] == 200


async def test_tokens_that_are_expired_or_foreign_or_for_others_are_refused(
    installed: Installed,
) -> None:
    good = await installed.token("monitoring/prometheus")
    key = private_key(installed.plane.credentials.service_account_key)
    assert (await installed.ask("/metrics", signed_again(good, key)))[0] == 200
    an_hour_ago = int(time.time()) - 3600
    bad = {
        "expired": signed_again(
            good, key, iat=an_hour_ago - 9, nbf=an_hour_ago - 9, exp=an_hour_ago
        ),
        "foreign": signed_again(good, ec.generate_private_key(ec.SECP256R1())),
        "for others": await installed.token("monitoring/prometheus", "https://vault.example"),
    }
    before = await installed.count("metrics", "token")
    for token in bad.values():
        status, text = await installed.ask("/metrics", token)
        assert status == 401
        assert "the token is invalid" in text
    assert await installed.count("metrics", "token") == before + len(bad)


async def test_a_token_made_for_muster_alone_is_taken_where_that_is_asked_for(
    installed: Installed,
) -> None:
    ours = await installed.token("monitoring/prometheus", OURS)
    plain = await installed.token("monitoring/prometheus")
    assert (await installed.ask("/metrics", ours, url=installed.narrow))[0] == 200
    assert (await installed.ask("/metrics", plain, url=installed.narrow))[0] == 401
    assert (await installed.ask("/metrics", ours))[0] == 401


async def test_bind_by_anybody_but_kube_scheduler_is_refused_and_counted_and_binds_nothing(
    installed: Installed,
) -> None:
    pod = pods.pod("target", gpus=1)
    pod["spec"]["schedulingGates"] = [{"name": PLAN_GATE}]
    made = await installed.api.create(PODS, pod)
    body = {
        "PodName": "target",
        "PodNamespace": "default",
        "PodUID": made["metadata"]["uid"],
        "Node": "n",
    }
    stranger = await installed.token("default/pod")
    admin = installed.plane.credentials.tokens["admin"]
    nobody, forbidden = [await installed.count("bind", why) for why in ("nobody", "forbidden")]
    assert (await installed.ask(BIND, body=body))[0] == 401
    for token in (stranger, admin):
        status, text = await installed.ask(BIND, token, body=body)
        assert status == 403
        assert json.loads(text)["Error"].startswith("bind: user ")
    # kube-scheduler is let in, and told that nothing is planned: the wire's own answer.
    status, text = await installed.ask(BIND, body=body, shown=True)
    assert (status, bool(json.loads(text)["Error"])) == (200, True)
    assert await installed.count("bind", "nobody") == nobody + 1
    assert await installed.count("bind", "forbidden") == forbidden + 2
    assert "nodeName" not in (await installed.api.get(f"{PODS}/target"))["spec"]


async def test_kube_schedulers_certificate_does_not_read(installed: Installed) -> None:
    assert (await installed.ask("/v1/gangs", shown=True))[0] == 403


async def test_the_token_of_an_account_that_was_deleted_is_nobodys(installed: Installed) -> None:
    token = await installed.token("default/gone")
    assert (await installed.ask("/v1/gangs", token))[0] == 403
    await installed.api.delete("/api/v1/namespaces/default/serviceaccounts/gone")
    await installed.becomes(401, "/v1/gangs", token)


async def test_the_command_line_shows_a_token(
    installed: Installed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    flags = ["--extender", installed.url, "--ca", str(installed.directory / "ca.crt")]
    flags += ["--token-file", str(file)]
    file.write_text(await installed.token("monitoring/operator") + "\n")
    assert await asyncio.to_thread(main, ["status", *flags]) == 0
    assert "Cluster" in capsys.readouterr().out
    file.write_text(await installed.token("default/pod"))
    assert await asyncio.to_thread(main, ["status", *flags]) == 4  # not allowed (docs/cli.md)
    assert "user 'system:serviceaccount:default:pod' may not" in capsys.readouterr().err


async def test_while_the_api_server_is_away_tokens_are_503_and_kube_scheduler_is_let_in(
    installed: Installed,
) -> None:
    token = await installed.token("monitoring/prometheus")
    installed.plane.kill(API_SERVER)
    try:
        assert (await installed.ask("/metrics", token))[0] == 503
        assert (await installed.ask(BIND, body={}, shown=True))[0] == 400
    finally:
        await installed.plane.start(API_SERVER)
    await installed.becomes(200, "/metrics", token)


async def test_the_extender_may_ask_what_it_asks(installed: Installed) -> None:
    await installed.ask("/metrics", await installed.token("monitoring/prometheus"))
    reviewed = installed.reviewed()
    assert {resource for resource, _ in reviewed} == REVIEWS
    assert {code for _, code in reviewed} == {201}
