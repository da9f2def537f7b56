#!/usr/bin/env python3
"""Writes stub libraries for macOS, as text: release/stubs.py TRIPLE FOLDER.

A linker needs of a system library its place on the Mac and the names in it; a `.tbd` file is both, as text. The names are those
that the crates with the declarations have (`core-foundation-sys` and its like), all of them: which of them the program
takes is known after the link only, and a name that nobody takes is not in the program.
"""
import json, os, re, subprocess, sys

# crate → the framework that its `extern` blocks are about.
FRAMEWORKS = {
    "core-foundation-sys": "CoreFoundation",
    "security-framework-sys": "Security",
    "system-configuration-sys": "SystemConfiguration",
}
# Rust's own library asks for it, and libc declares these.
ICONV = ["iconv", "iconv_close", "iconv_open"]


def declared(folder):
    """The names that the `extern` blocks of a crate declare."""
    names = set()
    for place, _, files in os.walk(os.path.join(folder, "src")):
        for file in files:
            if not file.endswith(".rs"):
                continue
            with open(os.path.join(place, file), encoding="utf-8") as source:
                text = re.sub(r"//[^\n]*|/\*.*?\*/", "", source.read(), flags=re.S)
            for block in re.finditer(r'extern\s+"C"\s*\{', text):
                depth, end = 1, block.end()
                while depth and end < len(text):
                    depth += {"{": 1, "}": -1}.get(text[end], 0)
                    end += 1
                inside = text[block.end():end]
                names.update(re.findall(r"\bfn\s+(\w+)\s*[(<]", inside))
                names.update(re.findall(r"\bstatic\s+(?:mut\s+)?(\w+)\s*:", inside))
    return names


def write(path, place, names):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    symbols = ", ".join(f"'_{name}'" for name in sorted(names))
    with open(path, "w", encoding="utf-8") as file:
        file.write("--- !tapi-tbd\ntbd-version: 4\ntargets: [ x86_64-macos, arm64-macos ]\n"
                   f"install-name: '{place}'\n"
                   "exports:\n  - targets: [ x86_64-macos, arm64-macos ]\n"
                   f"    symbols: [ {symbols} ]\n...\n")


def main():
    triple, folder = sys.argv[1:]
    metadata = json.loads(subprocess.run(["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", triple],
                                         check=True, stdout=subprocess.PIPE).stdout)
    names = {framework: set() for framework in FRAMEWORKS.values()}
    for package in metadata["packages"]:
        if framework := FRAMEWORKS.get(package["name"]):
            names[framework] |= declared(os.path.dirname(package["manifest_path"]))
    for framework, symbols in names.items():
        if not symbols:
            sys.exit(f"release/stubs.py: no crate declares anything of {framework} any more; take it out of FRAMEWORKS")
        write(os.path.join(folder, "Frameworks", f"{framework}.framework", f"{framework}.tbd"),
              f"/System/Library/Frameworks/{framework}.framework/Versions/A/{framework}", symbols)
    write(os.path.join(folder, "lib", "libiconv.tbd"), "/usr/lib/libiconv.2.dylib", ICONV)


if __name__ == "__main__":
    main()
