#!/usr/bin/env python3
"""What a Kubernetes minor serves, as the data that opdev embeds: see README.md beside this file.

    facts.py home KUBECTL KUBECONFIG SRC         the home version: schemas, resources and roles of a running server
    facts.py older RELEASE SRC                   an older minor: what differs from the home version
    facts.py differences RELEASE SRC             prints in which definitions and resources RELEASE differs, and where

SRC is the folder src. `home` keeps what it replaces as an older minor, and writes the older ones anew beside it. RELEASE
is a version of the module k8s.io/kubernetes, such as v1.36.3, whose source has what Kubernetes records from a running
kube-apiserver at each release: its discovery and its OpenAPI documents.
"""

import gzip
import json
import pathlib
import re
import subprocess
import sys

# Recorded documents are of a server with all versions on. A server has by default only those that are final.
FINAL = ("v1", "v2")
# Verbs that discovery gives in an order of its own.
OPTIONAL = ("shortNames", "categories")
KINDS = "x-kubernetes-group-version-kind"


class Server:
    """A running server."""

    def __init__(self, kubectl, kubeconfig):
        self.command = [kubectl, "--kubeconfig", kubeconfig, "get", "--raw"]

    def get(self, path):
        return json.loads(subprocess.run([*self.command, path], check=True, capture_output=True).stdout)

    def group_versions(self):
        yield "", "v1"
        for group in self.get("/apis")["groups"]:
            for version in group["versions"]:
                yield group["name"], version["version"]

    def discovery(self, group, version):
        return self.get(prefix(group, version))

    def openapi(self, group, version):
        return self.get("/openapi/v3" + prefix(group, version))


class Recorded:
    """What a release's source says, for the versions that are on by default."""

    def __init__(self, release):
        told = subprocess.run(["go", "mod", "download", "-json", f"k8s.io/kubernetes@{release}"], check=True,
                              capture_output=True, cwd="/").stdout
        self.api = pathlib.Path(json.loads(told)["Dir"]) / "api"

    def group_versions(self):
        yield "", "v1"
        for group in json.loads((self.api / "discovery" / "apis.json").read_text())["groups"]:
            for version in group["versions"]:
                if version["version"] in FINAL:
                    yield group["name"], version["version"]

    def discovery(self, group, version):
        return json.loads((self.api / "discovery" / f"{self.name(group, version)}.json").read_text())

    def openapi(self, group, version):
        path = self.api / "openapi-spec" / "v3" / f"{self.name(group, version)}_openapi.json"
        return json.loads(path.read_text())

    @staticmethod
    def name(group, version):
        return f"apis__{group}__{version}" if group else f"api__{version}"


def prefix(group, version):
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def resources(source):
    """The built-in resources in the order of their groups, versions and names."""
    found = []
    for group, version in sorted(source.group_versions()):
        listed = source.discovery(group, version)["resources"]
        for one in sorted((one for one in listed if "/" not in one["name"]), key=lambda one: one["name"]):
            fact = {"group": group, "version": version, "resource": one["name"], "kind": one["kind"],
                    "singular": one["singularName"], "namespaced": one["namespaced"],
                    "verbs": sorted(one["verbs"]), "subresources": []}
            fact.update({key: one[key] for key in OPTIONAL if key in one})
            for inner in sorted(listed, key=lambda inner: inner["name"]):
                if inner["name"].startswith(one["name"] + "/"):
                    fact["subresources"].append(subresource(inner, group, version))
            found.append(fact)
    return found


def subresource(one, group, version):
    fact = {"name": one["name"].split("/", 1)[1], "kind": one["kind"], "verbs": sorted(one["verbs"])}
    if "version" in one and (one.get("group", ""), one["version"]) != (group, version):
        fact.update({key: one[key] for key in ("group", "version") if one.get(key)})
    return fact


def definitions(source):
    """The schemas of all documents by name, without descriptions; each with its kinds."""
    found, marks = {}, {}
    served = set(source.group_versions())
    for group, version in served:
        for name, schema in source.openapi(group, version).get("components", {}).get("schemas", {}).items():
            found[name] = plain(schema)
            # A document names only its own of the kinds that a definition is in several groups.
            for mark in found[name].get(KINDS, []):
                if (mark["group"], mark["version"]) in served:
                    marks.setdefault(name, {})[mark["group"], mark["version"], mark["kind"]] = mark
    for name, kinds in marks.items():
        found[name][KINDS] = [kinds[key] for key in sorted(kinds)]
    return found


def plain(schema):
    """A schema without descriptions, whose references are the bare names of definitions."""
    if isinstance(schema, list):
        return [plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {}
    for key, value in schema.items():
        if key == "$ref":
            made[key] = value.rsplit("/", 1)[-1]
        elif key in ("properties", "patternProperties"):
            made[key] = {name: plain(one) for name, one in value.items()}
        elif key != "description" or not isinstance(value, str):
            made[key] = plain(value)
    # Until 1.36 a server gave the empty value of Go's types as the default of items; it never filled anything in.
    for items in ("items", "additionalProperties"):
        if isinstance(made.get(items), dict):
            made[items].pop("default", None)
            made[items] = plain(made[items])
    alone = made.get("allOf", [])
    if len(alone) == 1 and set(alone[0]) == {"$ref"} and set(made) <= {"allOf", "default"}:
        made["$ref"] = made.pop("allOf")[0]["$ref"]
    return made


def lines(found):
    """One line of each definition: its name, its kinds and its schema."""
    for name in sorted(found):
        marks = found[name].get(KINDS, [])
        kinds = " ".join(f"{mark['group']}/{mark['version']}/{mark['kind']}" for mark in marks)
        yield f"{name}\t{kinds}\t{text(found[name])}\n"


def text(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def roles(server):
    """The roles and bindings of a new cluster, without the rules of aggregated ClusterRoles."""
    kept = []
    for plural, kind in (("clusterroles", "ClusterRole"), ("clusterrolebindings", "ClusterRoleBinding"),
                         ("roles", "Role"), ("rolebindings", "RoleBinding")):
        listed = server.get(f"/apis/rbac.authorization.k8s.io/v1/{plural}")["items"]
        for one in listed:
            meta = one["metadata"]
            if meta.get("labels", {}).get("kubernetes.io/bootstrapping") != "rbac-defaults":
                continue
            made = {**one, "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind}
            made["metadata"] = {key: meta[key] for key in ("name", "namespace", "labels", "annotations") if key in meta}
            if "aggregationRule" in made:
                made.pop("rules", None)
            kept.append(made)
    return kept


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(value.encode(), 9, mtime=0))
    print(f"{path}: {path.stat().st_size} bytes")


def home(kubectl, kubeconfig, src):
    server, src = Server(kubectl, kubeconfig), pathlib.Path(src)
    told = server.get("/version")
    minor = f"{told['major']}.{told['minor']}"
    known = {one: minor_of(src, one) for one in older_minors(src)}
    known[home_minor(src)] = embedded(src)
    assets = src / "object" / "assets"
    write(assets / "schemas.tsv.gz", "".join(lines(definitions(server))))
    write(assets / "resources.json.gz", text(resources(server)))
    write(src / "controlplane" / "registry" / "assets" / "rbac.json.gz", text(roles(server)))
    facts = src / "object" / "facts" / "mod.rs"
    facts.write_text(re.sub(r'(KUBERNETES_MINOR: &str = )"[0-9.]+"', rf'\1"{minor}"', facts.read_text()))
    known.pop(minor, None)
    for one, (rows, listed) in known.items():
        write_older(src, one, rows, listed)


def home_minor(src):
    return re.search(r'KUBERNETES_MINOR: &str = "([0-9.]+)"', (src / "object" / "facts" / "mod.rs").read_text())[1]


def older_minors(src):
    return [folder.name for folder in (src / "object" / "assets").iterdir() if folder.is_dir()]


def unpacked(path):
    return gzip.decompress(path.read_bytes()).decode()


def embedded(src):
    """The lines of definitions by name and the resources of the home version, as the assets have them."""
    assets = pathlib.Path(src) / "object" / "assets"
    rows = unpacked(assets / "schemas.tsv.gz").splitlines(keepends=True)
    return {row.split("\t", 1)[0]: row for row in rows}, json.loads(unpacked(assets / "resources.json.gz"))


def minor_of(src, minor):
    """The same of an older minor."""
    rows, _ = embedded(src)
    folder = src / "object" / "assets" / minor
    for row in unpacked(folder / "schemas.tsv.gz").splitlines(keepends=True):
        name = row.split("\t", 1)[0].strip()
        rows.pop(name, None)
        if "\t" in row:
            rows[name] = row
    return rows, json.loads(unpacked(folder / "resources.json.gz"))


def write_older(src, minor, then, listed):
    """The lines in which an older minor differs, and a bare name for each definition that it has not; its resources."""
    now, _ = embedded(src)
    rows = [row for name, row in then.items() if now.get(name) != row]
    rows += [f"{name}\n" for name in now if name not in then]
    folder = src / "object" / "assets" / minor
    write(folder / "schemas.tsv.gz", "".join(sorted(rows)))
    write(folder / "resources.json.gz", text(listed))


def older(release, src):
    src, source = pathlib.Path(src), Recorded(release)
    then = definitions(source)
    # Recorded documents have no enums: those of the home version stand in, for the same fields of the same types.
    for name, row in embedded(src)[0].items():
        take_enums(then.get(name), json.loads(row.split("\t", 2)[2]))
    rows = {row.split("\t", 1)[0]: row for row in lines(then)}
    write_older(src, release.lstrip("v").rsplit(".", 1)[0], rows, resources(source))


def take_enums(then, now):
    if not isinstance(then, dict) or not isinstance(now, dict):
        return
    if "enum" in now and "enum" not in then and now.get("type") == then.get("type"):
        then["enum"] = now["enum"]
    for key in then:
        take_enums(then[key], now.get(key))


def differences(release, src):
    rows, listed = embedded(src)
    then, kinds = definitions(Recorded(release)), resources(Recorded(release))
    now = {name: json.loads(row.split("\t", 2)[2]) for name, row in rows.items()}
    for name in sorted(set(then) | set(now)):
        differ(name, now.get(name), then.get(name))
    by_name = [{(one["group"], one["version"], one["resource"]): one for one in some} for some in (listed, kinds)]
    for key in sorted(set(by_name[0]) | set(by_name[1])):
        differ("/".join(key), by_name[0].get(key), by_name[1].get(key))


def differ(place, now, then):
    if now == then or place.endswith(KINDS):
        return
    if isinstance(now, dict) and isinstance(then, dict):
        for key in sorted(set(now) | set(then)):
            differ(f"{place}.{key}", now.get(key), then.get(key))
    else:
        print(f"{place}\n  home:  {text(now)[:300]}\n  older: {text(then)[:300]}")


COMMANDS = {"home": home, "older": older, "differences": differences}

if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
