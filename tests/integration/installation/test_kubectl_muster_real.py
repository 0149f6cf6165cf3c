"""`kubectl muster` with nothing but a kubeconfig, through the proxy of a real API server.

::

    reader  (token, ClusterRole muster-reader)      sees every gang
    anna    (client certificate, pods of team-a)    sees gangs of team-a
    berta   (token, pods of team-b)                 sees gangs of team-b
    nobody  (token, no Role of Muster's)            may not use the proxy
    all but nobody: Role muster-user in muster-system
"""

import asyncio
import datetime as dt
import json
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from support.extenders.authorities import Authority
from support.extenders.behindproxy import RBAC_API, Site, account, behind_proxy, rows, user
from support.machine.patience import PATIENCE_S

from loadtest.testbed.client import pods
from loadtest.testbed.client.nodes import create_all, create_nodes, grid
from loadtest.testbed.controlplane.assets import Minor
from muster.cli.completion import SECONDS
from muster.cli.kubeconfig import context
from muster.cli.reach import identity
from muster.cli.reach.exchange import SentRequest, with_api_server
from muster.cli.reach.serviceproxy import SERVICE
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

GANGS = {"team-a": "blue", "team-b": "red"}


async def _gangs(site: Site) -> None:
    """Two gated gangs in two namespaces, each larger than the cluster."""
    await create_nodes(site.api, grid(2))
    for namespace, name in GANGS.items():
        await site.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        gang = pods.Gang(name, 3, namespace=namespace)
        owner = await pods.create_owner(site.api, gang)
        made = list(pods.members(gang, owner))
        for pod in made:
            pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
        await create_all(site.api, f"/api/v1/namespaces/{namespace}/pods", made)


async def _people(site: Site) -> None:
    berta, reader = account("team-b/berta"), account("default/reader")
    # Of `view`, which a controller puts together that does not run here, what matters.
    view = "ClusterRole/sees-pods"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    await site.api.create(
        f"{RBAC_API}/clusterroles", {"metadata": {"name": "sees-pods"}, "rules": [rule]}
    )
    await site.bind("users", "muster-system", "Role/muster-user", user("anna"), berta, reader)
    await site.bind("anna", "team-a", view, user("anna"))
    await site.bind("berta", "team-b", view, berta)
    await site.bind("readers", "", "ClusterRole/muster-reader", reader)
    certified = site.certified(site.people.issue("anna", "blue-team"))
    site.kubeconfig("anna", certified, namespace="team-a")
    shutil.copy(site.plane.kubeconfig(), of(site, "administrator"))
    for name in ("team-b/berta", "default/reader", "default/nobody"):
        token = await site.token(name)
        namespace, _, called = name.partition("/")
        site.kubeconfig(called, {"token": token}, namespace=namespace)


def of(site: Site, name: str) -> Path:
    return site.directory / f"{name}.kubeconfig"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(minor: Minor, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with behind_proxy(minor, tmp_path_factory.mktemp("proxied")) as made:
        await _gangs(made)
        await _people(made)
        async with asyncio.timeout(PATIENCE_S):  # the authoriser and the watches take note
            while True:
                said = await made.muster(of(made, "reader"), "gangs", "-A", "-o", "json")
                if said.code == 0 and len(rows(said)) == len(GANGS):
                    break
        yield made


async def test_a_reader_of_the_cluster_sees_every_gang_with_nothing_but_a_kubeconfig(
    site: Site,
) -> None:
    said = await site.muster(of(site, "reader"), "gangs", "-A")
    assert said.code == 0, said.err
    assert "team-a/blue" in said.out
    assert "team-b/red" in said.out
    assert (await site.muster(of(site, "reader"), "status")).code == 0


@pytest.mark.parametrize(
    ("who", "mine", "theirs"), [("anna", "team-a/blue", "red"), ("berta", "team-b/red", "blue")]
)
async def test_a_user_of_one_namespace_sees_its_gangs_and_no_others(
    site: Site, who: str, mine: str, theirs: str
) -> None:
    """With a token or with a client certificate, and whether -A is typed or not."""
    for words in (("gangs",), ("gangs", "-A")):
        said = await site.muster(of(site, who), *words)
        assert said.code == 0, said.err
        assert mine in said.out
        assert theirs not in said.out


async def test_a_user_explains_pods_and_gangs_of_the_own_namespace_without_names_of_others(
    site: Site,
) -> None:
    for subject in ("pod/blue-0", "gang/blue", "team-a/blue-0"):
        said = await site.muster(of(site, "anna"), "explain", subject)
        assert said.code == 0, said.err
        assert "team-a/blue" in said.out
        assert "red" not in said.out
    told = await site.muster(of(site, "anna"), "story", "gang/blue", "-o", "json")
    assert told.code == 0, told.err
    assert json.loads(told.out)["entries"]
    assert "team-b" not in told.out


async def test_another_namespace_is_refused_with_the_right_that_lacks(site: Site) -> None:
    refused = await site.muster(of(site, "anna"), "explain", "team-b/red-0")
    assert refused.code == 4
    assert "get pods/red-0 in team-b" in refused.err
    refused = await site.muster(of(site, "anna"), "gangs", "-n", "team-b")
    assert refused.code == 4
    assert "list pods in team-b" in refused.err
    refused = await site.muster(of(site, "anna"), "status")
    assert refused.code == 4


async def test_a_user_without_the_role_gets_to_know_the_role_to_bind(site: Site) -> None:
    said = await site.muster(of(site, "nobody"), "gangs")
    assert said.code == 4
    assert "get services/proxy https:muster-extender:https" in said.err
    assert "create pods/portforward" in said.err
    assert "--role=muster-user" in said.err


async def test_no_certificate_of_the_cluster_schedules_or_reserves_whatever_its_name(
    site: Site,
) -> None:
    """Neither as kube-scheduler nor as an administrator: a signature only reads."""
    for name, groups in (("kube-scheduler", ()), ("root", ("system:masters",))):
        shown = site.certified(site.people.issue(name, *groups))
        kubeconfig = site.kubeconfig(f"as-{name}", shown)
        if not groups:
            await site.bind("false", "muster-system", "Role/muster-user", user(name))
        for path in ("/v1/extender/bind", "/v1/reservations"):
            answer = await asyncio.to_thread(posted, kubeconfig, path)
            assert answer[0] == 401, answer
            assert "nothing shows who is calling" in answer[1]


def posted(kubeconfig: Path, path: str) -> tuple[int, str]:
    """POST through the proxy with all that `kubectl muster` would show."""
    cluster = context.find(kubeconfig, None)
    shown = identity.shown(cluster.credential, SentRequest(path, {}, b"{}"), proxied=True)
    proxied = f"/api/v1/namespaces/muster-system/services/{SERVICE}/proxy{path}"
    answer = with_api_server(cluster, SentRequest(proxied, shown, b"{}"), 30)
    return answer.status, answer.body.decode()


async def test_a_certificate_that_the_clusters_ca_did_not_sign_is_nobodys(
    site: Site, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path, "kubernetes").issue("anna")
    said = await site.muster(site.kubeconfig("stranger", site.certified(stranger)), "gangs")
    assert said.code == 4
    assert "does not accept user 'stranger'" in said.err


async def test_an_expired_certificate_is_called_expired(site: Site) -> None:
    old = site.people.issue("anna-of-old", valid_for=-dt.timedelta(minutes=5))
    said = await site.muster(site.kubeconfig("old", site.certified(old)), "gangs")
    assert said.code == 4
    assert "its certificate expired on" in said.err


async def test_without_a_leader_the_user_gets_to_know_where_to_look(site: Site) -> None:
    await site.endpoints(ready=False)
    try:
        said = await site.muster(of(site, "anna"), "gangs")
        assert said.code == 3
        assert "no extender leads" in said.err
        assert "kubectl -n muster-system get pods,lease" in said.err
    finally:
        await site.endpoints(ready=True)


async def test_where_muster_is_not_installed_that_is_the_answer(site: Site) -> None:
    kubeconfig = site.plane.kubeconfig("observer")
    said = await site.muster(kubeconfig, "gangs", "--muster-namespace", "default")
    assert said.code == 3
    assert "Muster is not installed in namespace default" in said.err


# --- completion ----------------------------------------------------------------------------


async def completed(site: Site, who: str, *words: str) -> list[str]:
    """Return what is offered for the last word, cobra's directive last."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "muster.cli.completion", *words),
        env={"PATH": "/usr/bin:/bin", "KUBECONFIG": str(of(site, who)), SECONDS: "60"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0
    assert err == b""
    return out.decode().splitlines()


async def test_gangs_pods_namespaces_and_contexts_are_offered_as_the_user_may_see_them(
    site: Site,
) -> None:
    pods_of_blue = [f"blue-{number}" for number in range(3)]
    for words, offered in (
        (("explain", "gang/"), ["gang/blue", ":4"]),
        (("story", "gang/r"), [":4"]),  # another namespace's
        (("defrag", ""), ["blue", ":4"]),
        (("whatif", "--gang", "b"), ["blue", ":4"]),
        (("explain", "pod/"), [*(f"pod/{name}" for name in pods_of_blue), ":4"]),
        (("explain", "blue-"), [*pods_of_blue, ":4"]),
        (("explain", "team-a/"), [*(f"team-a/{name}" for name in pods_of_blue), ":4"]),
        (("explain", "team-b/"), [":4"]),  # may not be listed
        (("ungate", "team-a/blue-1"), ["team-a/blue-1", ":4"]),
        (("explain", "-n", "team-b", "pod/"), [":4"]),
        (("gangs", "-n", ""), [":4"]),  # may not list namespaces
        (("gangs", "--context", ""), ["anna", ":4"]),
        (("gangs", "--context=a"), ["anna", ":4"]),
    ):
        assert await completed(site, "anna", *words) == offered, words
    offered = await completed(site, "administrator", "gangs", "--namespace", "team-")
    assert offered == ["team-a", "team-b", ":4"]


async def test_kubectl_itself_offers_what_the_plugin_says(site: Site, tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed here")
    for name, module in (("kubectl-muster", "main"), ("kubectl_complete-muster", "completion")):
        plugin = tmp_path / name
        plugin.write_text(f'#!/bin/sh\nexec {sys.executable} -m muster.cli.{module} "$@"\n')
        plugin.chmod(0o755)
    for words, offered in (
        (("explain", "gang/"), ["gang/blue", ":4"]),
        (("gangs", "--output", "j"), ["json", ":4"]),
        (("gangs", "--output=j"), ["json", ":4"]),
        (("unga",), ["ungate\ttake Muster's gate off pods by hand", ":4"]),
    ):
        process = await asyncio.create_subprocess_exec(
            *(kubectl, "__complete", "muster", *words),
            env=_environment(site, tmp_path),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
        assert out.decode().splitlines() == offered, words


# --- watching ------------------------------------------------------------------------------


@asynccontextmanager
async def watching(site: Site, who: str, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "muster.cli.main", *words, "--watch", "--interval", "0.2"),
        env={"PATH": "/usr/bin:/bin", "KUBECONFIG": str(of(site, who))},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def until(stream: asyncio.StreamReader | None, says: str) -> list[str]:
    """Read lines until one says so, and return all of them."""
    assert stream is not None
    lines = [(await stream.readline()).decode()]
    while says not in lines[-1]:
        assert lines[-1], lines
        lines.append((await stream.readline()).decode())
    return lines


async def _ended_by_the_user(process: asyncio.subprocess.Process) -> tuple[str, str]:
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in err.decode()
    return out.decode(), err.decode()


async def test_a_watch_prints_a_new_gang_alone_and_ends_at_ctrl_c(site: Site) -> None:
    """Waiting gangs grow older all the while: that is no change."""
    async with watching(site, "anna", "gangs") as process:
        first = await until(process.stdout, "team-a/blue")
        made = await _new_gang(site, "teal")
        try:
            more = await until(process.stdout, "team-a/teal")
            rest, err = await _ended_by_the_user(process)
        finally:
            await _gone(site, made)
    assert first[0].startswith("GANG ")
    printed = [*first, *more, *rest.splitlines()]
    assert sum("team-a/blue" in line for line in printed) == 1
    assert sum(line.startswith("GANG ") for line in printed) == 1
    assert err == ""


async def test_a_watch_outlives_a_time_without_a_leader_and_says_so_once(site: Site) -> None:
    async with watching(site, "anna", "gangs", "-o", "name") as process:
        assert await until(process.stdout, "gang/blue") == ["gang/blue\n"]
        await site.endpoints(ready=False)
        try:
            await until(process.stderr, "no extender leads")
        finally:
            await site.endpoints(ready=True)
        made = await _new_gang(site, "jade")
        try:
            assert await until(process.stdout, "gang/jade") == ["gang/jade\n"]
            _, err = await _ended_by_the_user(process)
        finally:
            await _gone(site, made)
    assert "no extender leads" not in err


async def _new_gang(site: Site, name: str) -> list[str]:
    """Create a gated gang in team-a, and return the paths of its pods."""
    gang = pods.Gang(name, 2, namespace="team-a")
    made = list(pods.members(gang, await pods.create_owner(site.api, gang)))
    for pod in made:
        pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
    path = "/api/v1/namespaces/team-a/pods"
    await create_all(site.api, path, made)
    return [f"{path}/{pod['metadata']['name']}" for pod in made]


async def _gone(site: Site, paths: list[str]) -> None:
    for path in paths:
        await site.api.delete(path)


async def test_kubectl_finds_the_plugin_and_hands_its_flags_on(site: Site, tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed here")
    plugin = tmp_path / "kubectl-muster"
    plugin.write_text(f'#!/bin/sh\nexec {sys.executable} -m muster.cli.main "$@"\n')
    plugin.chmod(0o755)
    words = ("muster", "explain", "pod/blue-0", "-o", "name")
    process = await asyncio.create_subprocess_exec(
        *(kubectl, *words),
        env=_environment(site, tmp_path),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert out == b"pod/blue-0\n"


def _environment(site: Site, plugins: Path) -> dict[str, str]:
    """Return what kubectl needs to be anna's and to find the plugins; its caches go there, too."""
    path = f"{plugins}:/usr/bin:/bin"
    kubeconfig = str(of(site, "anna"))
    return {"PATH": path, "KUBECONFIG": kubeconfig, "HOME": str(plugins), SECONDS: "60"}
