#!/usr/bin/env python3
"""What a program is made of: release/parts.py --sbom|--licences TRIPLE TOOLS, on stdout.

`--sbom` is a CycloneDX document, `--licences` the texts of the licences of every crate that is linked for the target, of Rust's
library and of what the linker adds; where the text of one is not to be found, it ends with its name. Both are the same bytes for
the same Cargo.lock, target, SOURCE_DATE_EPOCH and rustc. TOOLS is the folder that release/build has zig in.
"""
import argparse, glob, json, os, re, subprocess, sys, time, tomllib, uuid

from readable import readable

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


def sysroot():
    return run("rustc", "--print", "sysroot").strip()


def fail(message):
    sys.exit(f"release/parts.py: {message}")


def file_of(what, *patterns):
    """The file of the first pattern that has one."""
    for pattern in patterns:
        if paths := sorted(glob.glob(pattern)):
            return paths[0]
    fail(f"no {what}: there is no {' and no '.join(patterns)}")


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


def musl_version(triple):
    """Of the C library that rustc has for a target: an archive of Unix, in which a member has it as a text."""
    path = file_of("musl", os.path.join(sysroot(), f"lib/rustlib/{triple}/lib/self-contained/libc.a"))
    with open(path, "rb") as file:
        data = file.read()
    place = 8
    while place < len(data):
        name, size = data[place:place + 16], int(data[place + 48:place + 58])
        if name.startswith(b"version."):
            return re.search(rb"\d+\.\d+\.\d+", data[place + 60:place + 60 + size])[0].decode()
        place += 60 + size + size % 2
    fail(f"{path} does not say its version")


def natives(parts):
    """What is in the program and is no crate: (name, version, licence, maker and product as CPE has them, who needs it)."""
    own = ("outrigger", parts.version)
    yield "rust-std", run("rustc", "--version").split()[1], "MIT OR Apache-2.0", "rust-lang:rust", own
    if "-linux-musl" in parts.triple:
        yield "musl", musl_version(parts.triple), "MIT", "musl-libc:musl", own
    for key in sorted(parts.linked):
        if key[0] == "libsqlite3-sys":
            source = read(os.path.join(parts.folder(key), "sqlite3/sqlite3.h"))
            yield "sqlite", re.search(r'#define SQLITE_VERSION\s+"([^"]+)"', source)[1], "blessing", "sqlite:sqlite", key


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

    # Scanners know crates by their purl, and these by their CPE.
    others = [({"type": "library", "bom-ref": f"pkg:generic/{name}@{version}", "name": name, "version": version,
                "purl": f"pkg:generic/{name}@{version}", "cpe": f"cpe:2.3:a:{cpe}:{version}:*:*:*:*:*:*:*", "scope": "required",
                "licenses": [{"expression": licence}]}, needs) for name, version, licence, cpe, needs in natives(parts)]
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
        "components": [component(key) for key in everything if key != own] + [it for it, _ in others],
        "dependencies": [{"ref": purl(key), "dependsOn": [purl(other) for other in parts.depends_on(key)]
                          + [it["bom-ref"] for it, needs in others if needs == key]} for key in everything]
                        + [{"ref": it["bom-ref"], "dependsOn": []} for it, _ in others],
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


def linked_besides(parts, tools):
    """What the linker adds that is neither a crate nor Rust's library: what it is, and where its terms are."""
    zig = os.path.join(tools, "lib/python3*/site-packages/ziglang")
    if "-linux-musl" in parts.triple:
        yield "musl, the C library (MIT)", [f"{zig}/lib/libc/musl/COPYRIGHT"]
    elif "-windows-" in parts.triple:
        # Debian's, of the very files that are linked; where another system has mingw-w64, the same terms as zig has them.
        yield "The runtime of mingw-w64", ["/usr/share/doc/mingw-w64-x86-64-dev/copyright", f"{zig}/lib/libc/mingw/COPYING"]
    else:
        yield "zig's compiler-rt (MIT)", [f"{zig}/LICENSE"]
    if "-linux-" in parts.triple:
        yield "LLVM's libunwind (Apache-2.0 WITH LLVM-exception)", [f"{zig}/lib/libunwind/LICENSE.TXT"]
    if "-linux-gnu" in parts.triple:
        yield "The code of glibc that starts a program (LGPL-2.1-or-later, with leave to link it)", [f"{zig}/lib/libc/glibc/LICENSES"]


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
        fail("no text of a licence for " + ", ".join(missing) + "; name where it is in ELSEWHERE")
    print(f"Outrigger {parts.version} for {parts.triple} is under MIT or Apache 2.0, as you choose: see LICENSE-MIT and LICENSE-APACHE.")
    print("It contains the following, each under its own terms.")
    line = "\n" + 100 * "-" + "\n"
    for text, who in sorted(by_text.items(), key=lambda it: it[1]):
        print(line + "\n".join(sorted(set(who))) + "\n\n" + text)
    print(line + "The standard library of Rust (MIT OR Apache-2.0), Copyright (c) The Rust Project Contributors\n\n" + mit)
    page = file_of("list of what Rust's library is made of", os.path.join(sysroot(), "share/doc/rust/COPYRIGHT-library.html"))
    library, count = readable(read(page))
    if not count:
        fail(f"{page} has no text of a licence any more: its form is another one")
    print(line + library)
    for what, places in linked_besides(parts, tools):
        print(line + what + "\n\n" + read(file_of(f"text of a licence for {what}", *places)).strip("\n"))
    if "-windows-" in parts.triple:
        print(line + "libgcc, of GCC (GPL-3.0-or-later WITH GCC-exception-3.1): the exception lets what it is linked into have terms of its own.")
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
