"""What the server says about itself: versions, groups and resources."""

from collections import defaultdict

from loadtest.testbed.client.wirejson import JsonObject
from loadtest.testbed.standins.apiserver.resources import Registry, Resource

VERSION: JsonObject = {
    "major": "1",
    "minor": "35",
    "gitVersion": "v1.35.4+simulated",
    "platform": "simulated",
}


def document(path: str, registry: Registry) -> JsonObject | None:
    """Return the discovery document at ``path``, ``None`` when there is none."""
    match path.strip("/").split("/"):
        case ["version"]:
            return VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["apis"]:
            return _group_list(registry)
        case ["api", "v1"]:
            return _resource_list("v1", _of(registry, "", "v1"))
        case ["apis", group, version]:
            found = _of(registry, group, version)
            return _resource_list(f"{group}/{version}", found) if found else None
        case _:
            return None


def _of(registry: Registry, group: str, version: str) -> list[Resource]:
    return [r for r in registry.all() if (r.group, r.version) == (group, version)]


def _group_list(registry: Registry) -> JsonObject:
    versions: defaultdict[str, list[str]] = defaultdict(list)
    for resource in registry.all():
        if resource.group and resource.version not in versions[resource.group]:
            versions[resource.group].append(resource.version)
    groups = [_group(name, found) for name, found in versions.items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _group(name: str, versions: list[str]) -> JsonObject:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def _resource_list(group_version: str, resources: list[Resource]) -> JsonObject:
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": [
            {
                "name": resource.plural,
                "singularName": resource.kind.lower(),
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
            }
            for resource in resources
        ],
    }
