"""Where metrics and health are served: a section of the configuration."""

from collections.abc import Iterator

import msgspec

DCGM_PORT = 9400  # where dcgm-exporter listens, and scrape configurations look


class ExporterTls(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Files of the serving certificate; ``clientCaFile`` makes client certificates mandatory."""

    cert_file: str
    key_file: str
    client_ca_file: str | None = None
    #: seconds between two checks whether the files have changed
    check_seconds: float = 10.0


class ExporterConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The section ``exporter``."""

    host: str = "0.0.0.0"  # noqa: S104 - in the pod's own network; Prometheus connects from outside
    port: int = DCGM_PORT
    tls: ExporterTls | None = None
    #: seconds for which a reading is shown
    stale_seconds: float = 60.0


def problems(config: ExporterConfig, where: str = "exporter") -> Iterator[str]:
    """Yield a line for each value that is not allowed; ``where``: name of the section."""
    bounds: list[tuple[str, float, float, float]] = [
        ("port", config.port, 0, 65535),
        ("staleSeconds", config.stale_seconds, 1, 3600),
    ]
    if config.tls is not None:
        bounds.append(("tls.checkSeconds", config.tls.check_seconds, 0.1, 3600))
    for field, value, low, high in bounds:
        if not low <= value <= high:
            yield f"{where}.{field}: {value:g} is out of range; allowed is {low:g} to {high:g}"
