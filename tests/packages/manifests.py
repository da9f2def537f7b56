"""Holds winget's manifests against winget's own schemas: manifests.py MANIFEST.yaml…, with jsonschema and PyYAML."""

import json
import sys
from pathlib import Path

import jsonschema
import yaml

SCHEMAS = Path(__file__).parent / "winget"


def strict(schema: object) -> None:
    """The schemas let any other name pass, a misspelt one as well; winget warns of it."""
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            schema.setdefault("additionalProperties", False)
        for part in schema.values():
            strict(part)
    elif isinstance(schema, list):
        for part in schema:
            strict(part)


def wrong(manifest: object) -> list[str]:
    name = f"manifest.{manifest['ManifestType']}.{manifest['ManifestVersion']}.json"
    schema = json.loads((SCHEMAS / name).read_text())
    strict(schema)
    errors = jsonschema.Draft7Validator(schema).iter_errors(manifest)
    return [f"{'/'.join(map(str, it.absolute_path)) or 'it'}: {it.message}" for it in errors]


def main() -> None:
    manifests = {path: yaml.safe_load(Path(path).read_text()) for path in sys.argv[1:]}
    kinds = sorted(it["ManifestType"] for it in manifests.values())
    found = [f"{path}: {error}" for path, it in manifests.items() for error in wrong(it)]
    if kinds != ["defaultLocale", "installer", "version"]:
        found.append(f"a package has a version, an installer and a locale, not {kinds}")
    if found:
        sys.exit("\n".join(found))
    for path, manifest in manifests.items():
        print(f"{path}: as {manifest['ManifestType']} {manifest['ManifestVersion']} has to be")


main()
