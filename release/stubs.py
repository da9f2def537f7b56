#!/usr/bin/env python3
"""Writes stub libraries for macOS, as text: release/stubs.py TRIPLE FOLDER.

    release/stubs.py --imports PROGRAM FOLDER     what a program takes of which library; fails where it would start on no Mac

A linker needs of a system library its place on the Mac and the names in it; a `.tbd` file is both, as text. The names are those
that the crates with the declarations have (`core-foundation-sys` and its like), all of them: which of them the program
takes is known after the link only, and a name that nobody takes is not in the program.
"""
import json, os, re, struct, subprocess, sys

# crate → the framework that its `extern` blocks are about.
FRAMEWORKS = {
    "core-foundation-sys": "CoreFoundation",
    "security-framework-sys": "Security",
    "system-configuration-sys": "SystemConfiguration",
}
# Rust's own library asks for it, and libc declares these.
ICONV = ["iconv", "iconv_close", "iconv_open"]
# Zig has that one itself.
SYSTEM = "/usr/lib/libSystem.B.dylib"
# The oldest macOS that the programs are for.
OLDEST = (11, 0)


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


def stubbed(folder):
    """Where on a Mac the libraries are that the stubs of a folder stand for."""
    places = set()
    for place, _, files in os.walk(folder):
        for file in files:
            with open(os.path.join(place, file), encoding="utf-8") as stub:
                places.update(re.findall(r"^install-name: '(.*)'$", stub.read(), re.M))
    return places


def imports(path, folder):
    """Prints the libraries that a Mach-O program names, and the names that it takes of each; ends with what is wrong with them."""
    with open(path, "rb") as file:
        data = file.read()
    magic, processor, _, _, count = struct.unpack_from("<5I", data)
    if magic != 0xFEEDFACF:
        sys.exit(f"release/stubs.py: {path} is no program of macOS")
    libraries, names, place, is_signed, oldest = [], {}, 32, False, None
    for _ in range(count):
        command, size = struct.unpack_from("<2I", data, place)
        # As it is needed, weakly, as one's own, lazily, upwards.
        if command in (0xC, 0x80000018, 0x8000001F, 0x20, 0x80000023):
            (offset,) = struct.unpack_from("<I", data, place + 8)
            libraries.append(data[place + offset:place + size].split(b"\0")[0].decode())
        elif command == 0x2:
            symbols, number, strings, _ = struct.unpack_from("<4I", data, place + 8)
            for index in range(number):
                at, kind, _, description = struct.unpack_from("<IBBH", data, symbols + 16 * index)
                # Undefined, and from a library by its place in the list.
                if kind & 0x0E == 0 and kind & 1:
                    name = data[strings + at:data.index(b"\0", strings + at)].decode()
                    names.setdefault(description >> 8, []).append(name)
        elif command == 0x1D:
            (at,) = struct.unpack_from("<I", data, place + 8)
            is_signed = data[at:at + 4] == b"\xfa\xde\x0c\xc0"
        elif command in (0x32, 0x24):
            (version,) = struct.unpack_from("<I", data, place + (12 if command == 0x32 else 8))
            oldest = (version >> 16, version >> 8 & 255)
        place += size
    said = ".".join(map(str, oldest)) if oldest else "of no version"
    print(f"macOS {said} or newer, {'with a signature' if is_signed else 'without a signature'}")
    for number, library in enumerate(libraries, 1):
        taken = sorted(names.get(number, []))
        print(f"{library}: {len(taken)} names{'' if library == SYSTEM else ': ' + ' '.join(taken)}")
    wrong = [f"there is no stub of {library}" for library in libraries if library not in stubbed(folder) | {SYSTEM}]
    if processor == 0x0100000C and not is_signed:
        wrong.append("it is for aarch64, where macOS starts nothing that is not signed")
    if not oldest or oldest > OLDEST:
        wrong.append(f"it asks for macOS {said}, and {OLDEST[0]}.{OLDEST[1]} has to do")
    if wrong:
        sys.exit("\n".join(f"release/stubs.py: {path}: {it}" for it in wrong))


def main():
    if sys.argv[1] == "--imports":
        return imports(*sys.argv[2:])
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
