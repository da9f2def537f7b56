#!/usr/bin/env python3
"""What kept sessions cost: requests, start and memory with a large store, beside an empty one.

    cargo build --profile dist && benches/kept.py [--sessions 10000] [--messages 1000000] [--longest 10000] [BINARY]

Fills a store with `cargo run --release -p outrigger-store --example fill`, and starts the daemon on it and on an empty
one. A session that is opened is sent whole to a client that has nothing of it. Python's standard library only.
"""
import argparse, os, statistics, subprocess, sys, tempfile, time

from daemon import Daemon

# How often each thing is measured; the median is told.
ROUNDS = 11


def ask(daemon, frame, answer):
    """Returns how long a request takes, in milliseconds."""
    began = time.perf_counter()
    daemon.send(frame)
    daemon.until(answer)
    return (time.perf_counter() - began) * 1000


def median(measure):
    return statistics.median(measure() for _ in range(ROUNDS))


def opened(daemon, session):
    """Returns how long it takes until a session that the store has is there, in milliseconds."""
    began = time.perf_counter()
    daemon.connect(f"?session={session}&after=0")
    took = (time.perf_counter() - began) * 1000
    daemon.socket.close()
    return took


def figures(binary, store):
    settings = {"store": {"path": store, "sync": "normal"}, "session": {"resume_grace": "1ms"}}
    ready = []
    for _ in range(ROUNDS):
        daemon = Daemon(binary, 9, settings=settings)
        ready.append(daemon.ready * 1000)
        daemon.stop()
    daemon = Daemon(binary, 9, settings=settings)
    daemon.connect()
    time.sleep(2)
    rows = {"spawn to ready line, ms": statistics.median(ready), "memory idle, MB PSS": daemon.pss()}
    listed = b"session:list-result"
    rows["list, ms"] = median(lambda: ask(daemon, {"type": "session:list"}, listed))
    # The most usual word of the store, one that is rare, and two together.
    for query in ("ba", "vonbanumo", "keli monu"):
        rows[f"search for \"{query}\", ms"] = median(lambda: ask(daemon, {"type": "session:list", "query": query}, listed))
    rows["a new session, ms"] = median(lambda: opened(daemon, "none"))
    if os.path.getsize(store) > 1 << 20:
        rows["open a session of 100 messages, ms"] = opened(daemon, "session7")
        rows["open the longest session, ms"] = opened(daemon, "longest")
    daemon.stop()
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--longest", type=int, default=10_000)
    parser.add_argument("binary", nargs="?", default="target/dist/outrigger")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        full, empty = os.path.join(folder, "full.db"), os.path.join(folder, "empty.db")
        fill = ["cargo", "run", "-q", "--release", "-p", "outrigger-store", "--example", "fill", "--", full,
                str(wanted.sessions), str(wanted.messages), str(wanted.longest)]
        text = int(subprocess.run(fill, check=True, stdout=subprocess.PIPE).stdout)
        before, after = figures(wanted.binary, empty), figures(wanted.binary, full)
        print("| | empty | full |\n|---|---:|---:|")
        for name, value in after.items():
            print(f"| {name} | {before[name]:.3g} | {value:.3g} |" if name in before else f"| {name} | | {value:.3g} |")
        print(f"| file, MB (text {text / 1e6:.0f} MB) | {os.path.getsize(empty) / 1e6:.2g} | {os.path.getsize(full) / 1e6:.4g} |")


sys.exit(main())
