#!/usr/bin/env python3
"""Prints the functions that a start, an answer and a tool call run, in the order in which the linker is to lay them.

    benches/link_order.py PROGRAM >LIST      # a program with its symbols; .ci/dist does all of it

Needs valgrind and nm.
"""
import bisect, os, re, subprocess, sys, tempfile, threading

import daemon


def executed(calls, binary):
    """Addresses of the binary's instructions that callgrind saw run."""
    addresses, objects, ours, now = set(), {}, False, 0
    with open(calls) as lines:
        for line in lines:
            # An object is named where it is mentioned first, as the one that runs or as one that is called.
            if mention := re.match(r"(c?)ob=\((\d+)\)\s*(.*)", line):
                called, number, name = mention.groups()
                objects.setdefault(number, name.strip())
                ours = ours if called else objects[number] == binary
            elif line.startswith(("0x", "+", "-", "*")):
                place = line.split()[0]
                now = int(place, 0) if place[0] == "0" else now if place == "*" else now + int(place, 0)
                if ours:
                    addresses.add(now)
    return addresses


def functions(binary):
    """Start, size and name of each function, by address."""
    listed = subprocess.run(["nm", "-S", "--defined-only", binary], check=True, capture_output=True, text=True)
    fields = (line.split() for line in listed.stdout.splitlines())
    return sorted((int(at, 16), int(size, 16), name) for at, size, kind, name in (f for f in fields if len(f) == 4) if kind in "tTwW")


def main():
    binary = os.path.realpath(sys.argv[1])
    known = functions(binary)
    if not known:
        sys.exit(f"{binary} has no symbols; .ci/dist builds one that has")
    server = daemon.Server(("127.0.0.1", 0), daemon.Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        watched = os.path.join(folder, "watched")
        with open(watched, "w") as file:
            file.write(f'#!/bin/sh\nexec valgrind --tool=callgrind --dump-instr=yes --callgrind-out-file={folder}/%p {binary} "$@"\n')
        os.chmod(watched, 0o700)
        run = daemon.Daemon(watched, server.server_address[1])
        run.connect()
        for words in ("?", "deltas", "tools 2"):
            run.say(words)
        run.stop()
        addresses = executed(os.path.join(folder, str(run.line["pid"])), binary)
    starts = [start for start, _, _ in known]
    used = {known[place] for place in (bisect.bisect_right(starts, at) - 1 for at in addresses) if place >= 0}
    sys.stdout.writelines(f"{name}\n" for _, _, name in sorted(used))
    print(f"{len(used)} of {len(known)} functions, {sum(size for _, size, _ in used) / 1e6:.1f} MB of code", file=sys.stderr)


if __name__ == "__main__":
    main()
