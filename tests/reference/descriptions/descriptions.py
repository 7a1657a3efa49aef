#!/usr/bin/env python3
"""Writes src/object/assets/descriptions.tsv.gz: what the API says about each definition and each of its fields.

Usage: descriptions.py FOLDER, where FOLDER is api/openapi-spec of the Kubernetes source of the same minor version. It is what
Kubernetes records from a running kube-apiserver at each release; `go mod download -json k8s.io/kubernetes@v1.36.0` says where
Go has it. Only definitions in schemas.tsv.gz are taken. The output is the same for the same input.
"""

import gzip
import json
import pathlib
import sys

ASSETS = pathlib.Path(__file__).resolve().parents[3] / "src" / "object" / "assets"


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    served = {
        line.split("\t", 1)[0]
        for line in gzip.decompress((ASSETS / "schemas.tsv.gz").read_bytes()).decode().splitlines()
    }
    definitions = json.loads((folder / "swagger.json").read_text())["definitions"]
    lines = []
    for name, definition in sorted(definitions.items()):
        if name not in served:
            continue
        fields = {"": definition, **definition.get("properties", {})}
        for field, about in sorted(fields.items()):
            if about.get("description"):
                text = json.dumps(about["description"], ensure_ascii=False)
                lines.append(f"{name}\t{field}\t{text}\n")
    missing = served - set(definitions)
    if missing:
        sys.exit(f"{folder} does not describe {', '.join(sorted(missing))}")
    packed = gzip.compress("".join(lines).encode(), 9, mtime=0)
    (ASSETS / "descriptions.tsv.gz").write_bytes(packed)
    print(f"{len(lines)} descriptions, {len(packed)} bytes")


main()
