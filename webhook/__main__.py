"""``python -m webhook``: run the webhook, or print its webhook configurations."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from muster.observability.imports import uncollected

with uncollected():
    import msgspec

    from muster.observability import logs
    from muster.observability.configfile import ConfigError
    from webhook.config import WebhookConfig, load
    from webhook.errors import WebhookError
    from webhook.process import built, run
    from webhook.registration.configurations import to_yaml


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code: 0 after an orderly end, 2 for a configuration that cannot be used."""
    given = _parser().parse_args(arguments)
    try:
        config = load(given.config)
        if given.print_configurations:
            _print_configurations(config, given.ca_file)
            return 0
        logs.configure(config.log_level)
        # Set in every container by the kubelet; without it and --kubeconfig nobody is there.
        in_cluster = "KUBERNETES_SERVICE_HOST" in os.environ
        asyncio.run(run(config, given.kubeconfig, in_cluster=in_cluster, announce=_announce))
    except (ConfigError, WebhookError) as error:
        print(f"muster webhook: {error}", file=sys.stderr)  # noqa: T201 - for the person at the terminal
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="muster webhook", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="YAML, WebhookConfiguration")
    parser.add_argument("--kubeconfig", help="default: this pod's service account, if any")
    parser.add_argument(
        "--print-configurations",
        action="store_true",
        help="print the Mutating- and ValidatingWebhookConfiguration as YAML, and end",
    )
    parser.add_argument("--ca-file", type=Path, help="PEM to put into them as caBundle")
    return parser


def _print_configurations(config: WebhookConfig, ca_file: Path | None) -> None:
    bundle = ca_file.read_bytes() if ca_file is not None else b""
    documents = [to_yaml(configuration).decode() for configuration in built(config, bundle)]
    sys.stdout.write("---\n".join(documents))


def _announce(url: str) -> None:
    line = msgspec.json.encode({"listening": url}).decode()
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
