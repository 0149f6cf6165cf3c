"""What kube-apiserver needs to show the webhook who it is: a configuration and a kubeconfig.

::

    --admission-control-config-file=admission.yaml ──► webhooks.kubeconfig ──► the bearer token

Both admission plugins that call webhooks read the kubeconfig. Its users are named by the host that
is called (apiserver, pkg/util/webhook/authentication.go), so no other webhook is shown the token.
"""

from __future__ import annotations

from typing import Final

import yaml

ADMISSION: Final = "admission.yaml"
KUBECONFIG: Final = "webhooks.kubeconfig"
SECRET: Final = "muster-webhook-callers"  # noqa: S105 - its name
_PLUGINS: Final = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
_GROUP: Final = "apiserver.config.k8s.io/v1"


def files(token: str, *, user: str, directory: str) -> tuple[tuple[str, str], ...]:
    """Return the names and texts of both files.

    ``user``: the host that the token is for, ``*`` for all webhooks. ``directory``: where
    kube-apiserver finds the files.
    """
    users = [{"name": user, "user": {"token": token}}]
    plugins = [
        {
            "name": name,
            "configuration": {
                "apiVersion": _GROUP,
                "kind": "WebhookAdmissionConfiguration",
                "kubeConfigFile": f"{directory}/{KUBECONFIG}",
            },
        }
        for name in _PLUGINS
    ]
    admission = {"apiVersion": _GROUP, "kind": "AdmissionConfiguration", "plugins": plugins}
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "users": users}
    return (
        (ADMISSION, yaml.safe_dump(admission, sort_keys=False)),
        (KUBECONFIG, yaml.safe_dump(kubeconfig, sort_keys=False)),
    )
