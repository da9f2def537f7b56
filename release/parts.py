#!/usr/bin/env python3
"""What a program is made of: release/parts.py --sbom|--licences TRIPLE TOOLS, on stdout.

`--sbom` is a CycloneDX document, `--licences` the texts of the licences of every crate that is linked for the target; where the
text of one is not to be found, it ends with its name. Both are the same bytes for the same Cargo.lock, target and
SOURCE_DATE_EPOCH. TOOLS is the folder that release/build has zig in.
"""
import argparse, glob, json, os, re, subprocess, sys, time, tomllib, uuid

# Crates that come without the text of their licence, and where it is: another crate of the same repository, or the name of
# whoever it belongs to, where it may be taken under MIT, or Apache 2.0.
ELSEWHERE = {
    "alloc-stdlib": "alloc-no-stdlib",
    "clipboard-win": "error-code",
    "jsonschema-regex": "jsonschema",
    "jsonschema-value": "jsonschema",
    "selectors": "cssparser",
    "winapi-x86_64-pc-windows-gnu": "winapi",
}
MIT = {
    "objc2-core-foundation": "Mads Marquart and the objc2 contributors",
    "objc2-system-configuration": "Mads Marquart and the objc2 contributors",
    "standardwebhooks": "the Standard Webhooks authors",
    "uuid-simd": "Nugine",
    "vsimd": "Nugine",
}
APACHE = {
    "opentelemetry": "The OpenTelemetry Authors",
    "opentelemetry-proto": "The OpenTelemetry Authors",
    "opentelemetry_sdk": "The OpenTelemetry Authors",
}
# Files of a crate that say under what terms it is.
TERMS = re.compile(r"(?i)(un)?licen[sc]e|copying|notice|copyright")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


class Parts:
    """The crates of a program, and how they depend on each other."""

    def __init__(self, triple):
        self.triple = triple
        self.metadata = json.loads(run("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", triple))
        self.packages = {(it["name"], it["version"]): it for it in self.metadata["packages"]}
        self.checksums = {(it["name"], it["version"]): it.get("checksum") for it in tomllib.loads(read("Cargo.lock"))["package"]}
        # `cargo tree` knows which features each target has; the metadata has them all together.
        self.linked = self.named("normal,no-proc-macro")
        self.built_with = self.named("normal,build") - self.linked
        self.version = self.packages[next(key for key in self.packages if key[0] == "outrigger")]["version"]

    def named(self, edges):
        lines = run("cargo", "tree", "--package", "outrigger", "--edges", edges, "--target", self.triple, "--prefix", "none",
                    "--format", "{p}", "--locked").splitlines()
        matches = (re.match(r"(\S+) v(\S+)", line) for line in lines if line.strip())
        return {(match[1], match[2]) for match in matches}

    def folder(self, key):
        return os.path.dirname(self.packages[key]["manifest_path"])

    def depends_on(self, key):
        ids = {it["id"]: (it["name"], it["version"]) for it in self.metadata["packages"]}
        node = next(it for it in self.metadata["resolve"]["nodes"] if it["id"] == self.packages[key]["id"])
        wanted = self.linked | self.built_with
        return sorted({ids[it["pkg"]] for it in node["deps"] if ids[it["pkg"]] in wanted
                       and any(kind["kind"] != "dev" for kind in it["dep_kinds"])})


def expression(text):
    """A licence as SPDX has it: crates of old write `/` for `OR`."""
    return re.sub(r"\s*/\s*", " OR ", text or "")


def purl(key):
    return f"pkg:cargo/{key[0]}@{key[1]}"


def sbom(parts):
    def component(key):
        package = parts.packages[key]
        found = {"type": "library", "bom-ref": purl(key), "name": key[0], "version": key[1], "purl": purl(key),
                 "scope": "required" if key in parts.linked else "excluded"}
        if package["license"]:
            found["licenses"] = [{"expression": expression(package["license"])}]
        if checksum := parts.checksums.get(key):
            found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        if package["repository"]:
            found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
        return found

    own = ("outrigger", parts.version)
    everything = sorted(parts.linked | parts.built_with)
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": moment,
            "component": {**component(own), "type": "application",
                          "properties": [{"name": "target", "value": parts.triple},
                                         {"name": "rustc", "value": run("rustc", "--version").strip()}]},
        },
        "components": [component(key) for key in everything if key != own],
        "dependencies": [{"ref": purl(key), "dependsOn": [purl(other) for other in parts.depends_on(key)]} for key in everything],
    }
    text = json.dumps(document, sort_keys=True)
    # A number of its own for each document, and the same one for the same.
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, text)}"
    json.dump(document, sys.stdout, indent=1, sort_keys=True)
    print()


def texts(parts, key):
    folder = parts.folder(key)
    files = [path for path in sorted(os.listdir(folder)) if TERMS.match(path)]
    files += sorted(glob.glob(os.path.join("LICENSES", "*"), root_dir=folder))
    paths = [os.path.join(folder, path) for path in files]
    paths = [path for path in paths if os.path.isfile(path) and not path.endswith((".rs", ".py"))]
    # Of a directory with that name, what is in it.
    for path in files:
        if os.path.isdir(os.path.join(folder, path)):
            paths += sorted(glob.glob(os.path.join(folder, path, "*")))
    return [read(path).replace("\r\n", "\n").strip("\n") for path in paths]


def licences(parts, tools):
    mit = re.search(r"Permission is hereby granted.*", read("LICENSE-MIT"), re.S)[0].strip()
    own = {key for key in parts.linked if "registry" not in parts.folder(key) and not parts.packages[key]["source"]}
    by_text, missing = {}, []
    for key in sorted(parts.linked - own):
        found = texts(parts, key)
        if not found and (other := ELSEWHERE.get(key[0])):
            found = [text for there in sorted(parts.packages) if there[0] == other for text in texts(parts, there)][:1]
        if not found and (holder := MIT.get(key[0])) and "MIT" in parts.packages[key]["license"].split(" OR "):
            found = [f"Copyright (c) {holder}\n\n{mit}"]
        if not found and (holder := APACHE.get(key[0])) and "Apache-2.0" in parts.packages[key]["license"].split(" OR "):
            found = [f"Copyright {holder}\n\n{read('LICENSE-APACHE').strip()}"]
        if not found:
            missing.append(" ".join(key))
        for text in found:
            by_text.setdefault(text, []).append(f"{key[0]} {key[1]} ({expression(parts.packages[key]['license'])})")
    if missing:
        sys.exit("release/parts.py: no text of a licence for " + ", ".join(missing) + "; name where it is in ELSEWHERE")
    print(f"Outrigger {parts.version} for {parts.triple} is under MIT or Apache 2.0, as you choose: see LICENSE-MIT and LICENSE-APACHE.")
    print("It contains the following, each under its own terms.")
    line = "\n" + 100 * "-" + "\n"
    for text, who in sorted(by_text.items(), key=lambda it: it[1]):
        print(line + "\n".join(sorted(set(who))) + "\n\n" + text)
    sysroot = run("rustc", "--print", "sysroot").strip()
    print(line + "The standard library of Rust (MIT OR Apache-2.0), Copyright (c) The Rust Project Contributors\n\n" + mit)
    library = os.path.join(sysroot, "share/doc/rust/COPYRIGHT-library.html")
    if not os.path.exists(library):
        sys.exit(f"release/parts.py: {library} is missing; it names what the standard library is made of")
    if "-linux-musl" in parts.triple:
        (path,) = glob.glob(os.path.join(tools, "lib/python3*/site-packages/ziglang/lib/libc/musl/COPYRIGHT"))
        print(line + "musl, the C library (MIT)\n\n" + read(path).strip("\n"))
    print(line + "SQLite: in the public domain, see https://sqlite.org/copyright.html")
    print(line + read("clients/console/dist/THIRD-PARTY.txt").strip("\n"))


def main():
    parser = argparse.ArgumentParser()
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--sbom", action="store_true")
    what.add_argument("--licences", action="store_true")
    parser.add_argument("triple")
    parser.add_argument("tools")
    arguments = parser.parse_args()
    parts = Parts(arguments.triple)
    sbom(parts) if arguments.sbom else licences(parts, arguments.tools)


if __name__ == "__main__":
    main()
