"""The exporter over HTTP on the loopback, as Prometheus and the kubelet's probes meet it."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from support.devices.illness import SOUND, reading, small_node
from support.extenders.authorities import Authority

from deviceplugin.exporter.board import MetricsBoard
from deviceplugin.exporter.config import ExporterConfig, ExporterTls, problems
from deviceplugin.exporter.server import serving
from deviceplugin.metrics import DevicePluginMetrics
from muster.observability.configfile import ConfigError
from muster.observability.health import Health
from muster.observability.metrics import new_registry
from muster.observability.servingcert import ServingCertificate

ANYWHERE = ExporterConfig(host="127.0.0.1", port=0)


@asynccontextmanager
async def exporter(
    config: ExporterConfig = ANYWHERE, ready: Health | None = None
) -> AsyncIterator[str]:
    board = MetricsBoard("n1")
    board.see(small_node())
    board.read([reading(temperature=61)], 100.0)
    metrics = DevicePluginMetrics(new_registry())
    async with serving(
        config, board, metrics, live=Health(), ready=ready or Health(), clock=lambda: 101.0
    ) as (host, port):
        yield f"{'https' if config.tls else 'http'}://{host}:{port}"


async def get(url: str, context: ssl.SSLContext | None = None) -> tuple[int, str, str]:
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context or True) as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


async def test_a_scrape_has_the_devices_and_the_plugins_own_metrics() -> None:
    async with exporter() as url:
        status, kind, text = await get(f"{url}/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="{SOUND}"' in text
    assert "process_resident_memory_bytes" in text
    assert "muster_device_plugin_scrape_seconds_count 0.0" in text


async def test_health_is_served_under_both_names_and_readiness_tells_what_is_lacking() -> None:
    ready = Health({"devices": lambda: "not seen yet"})
    async with exporter(ready=ready) as url:
        assert (await get(f"{url}/livez"))[0] == 200
        assert (await get(f"{url}/healthz"))[0] == 200
        status, _, text = await get(f"{url}/readyz")
        assert (status, text) == (500, "[-]devices failed: not seen yet\ncheck failed\n")
        ready.add("devices", lambda: None)
        assert (await get(f"{url}/readyz"))[0] == 200


async def test_with_a_certificate_it_serves_https_only(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("exporter")
    tls = ExporterTls(cert_file=str(pair.certificate), key_file=str(pair.key))
    trusting = ssl.create_default_context(cafile=str(authority.ca))
    async with exporter(ExporterConfig(host="127.0.0.1", port=0, tls=tls)) as url:
        assert (await get(f"{url}/livez", trusting))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await get(url.replace("https", "http") + "/livez")


def test_a_certificate_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    files = ExporterTls(cert_file=str(tmp_path / "a.crt"), key_file=str(tmp_path / "a.key"))
    with pytest.raises(ConfigError, match=r"exporter\.tls: .*a\.crt.*No such file"):
        ServingCertificate(files, field="exporter.tls")


def test_values_that_make_no_sense_are_refused() -> None:
    assert not list(problems(ExporterConfig()))
    tls = ExporterTls(cert_file="a", key_file="b", check_seconds=0)
    found = list(problems(ExporterConfig(port=99999, stale_seconds=0, tls=tls)))
    assert [line.split(":")[0] for line in found] == [
        "exporter.port",
        "exporter.staleSeconds",
        "exporter.tls.checkSeconds",
    ]
