#!/usr/bin/env python3
"""What kept sessions cost: requests, start and memory with a large store, beside an empty one.

    cargo build --profile dist && benches/kept.py [--sessions 10000] [--messages 1000000] [--longest 10000] [--store FILE] [BINARY]
    cargo build --profile dist && benches/kept.py --cost [BINARY]

Fills a store with `cargo run --release -p outrigger-store --example fill`, and starts the daemon on it and on an empty
one. A session that is opened is sent whole to a client that has nothing of it. `--store` is a file that is filled already.

`--cost` compares a daemon without a store with one that has it: what a send, a flood and an idle daemon cost.

Python's standard library only.
"""
import argparse, os, shutil, statistics, subprocess, sys, tempfile, threading, time

from daemon import Daemon, Provider, Server, flood, request

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


def opened_first(binary, settings, session):
    """The same, in a daemon that has not had it open: the file is in the system's cache."""
    daemon = Daemon(binary, 9, settings=settings)
    daemon.connect()
    time.sleep(0.3)
    took = opened(daemon, session)
    daemon.stop()
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
    # The most usual word of the store, one that is rare, two together, and the second one not typed to its end.
    for query in ("ba", "vonbanumo", "keli monu", "keli mon"):
        rows[f"search for \"{query}\", ms"] = median(lambda: ask(daemon, {"type": "session:list", "query": query}, listed))
    rows["a new session, ms"] = median(lambda: opened(daemon, "none"))
    daemon.stop()
    if os.path.getsize(store) > 1 << 20:
        rows["open a session of 100 messages, ms"] = median(lambda: opened_first(binary, settings, "session7"))
        rows["open the longest session, ms"] = median(lambda: opened_first(binary, settings, "longest"))
    return rows


def cost(binary):
    server = Server(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stores = {"none": {"enabled": False}, "normal": {"sync": "normal"}, "full": {"sync": "full"}}
    rows = {"memory idle, MB PSS": [], "send to request at the provider, ms": [], "flood, thousands a second": []}
    # One after the other: what several have of the program counts for each in part.
    for store in stores.values():
        daemon = Daemon(binary, 9, settings={"store": store})
        daemon.connect()
        time.sleep(2)
        rows["memory idle, MB PSS"].append(daemon.pss())
        daemon.stop()
    daemons = [Daemon(binary, server.server_address[1], settings={"store": store}) for store in stores.values()]
    for daemon in daemons:
        daemon.connect()
        daemon.say("warm")
    # In turns, so that what else the machine does is the same for each.
    requests = [[request(daemon) for daemon in daemons] for _ in range(ROUNDS)]
    floods = [[flood(daemon)[0] / 1000 for daemon in daemons] for _ in range(ROUNDS)]
    for row, found in zip(list(rows.values())[1:], (requests, floods)):
        row.extend(statistics.median(column) for column in zip(*found))
    for daemon in daemons:
        daemon.stop()
    print("| store | " + " | ".join(stores) + " |\n|---|" + "---:|" * len(stores))
    for name, values in rows.items():
        print(f"| {name} | " + " | ".join(f"{value:.3g}" for value in values) + " |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--longest", type=int, default=10_000)
    parser.add_argument("--store")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("binary", nargs="?", default="target/dist/outrigger")
    wanted = parser.parse_args()
    if wanted.cost:
        return cost(wanted.binary)
    with tempfile.TemporaryDirectory() as folder:
        full, empty = os.path.join(folder, "full.db"), os.path.join(folder, "empty.db")
        fill = ["cargo", "run", "-q", "--release", "-p", "outrigger-store", "--example", "fill", "--", full,
                str(wanted.sessions), str(wanted.messages), str(wanted.longest)]
        if wanted.store:
            shutil.copy(wanted.store, full)
            text = 0
        else:
            text = int(subprocess.run(fill, check=True, stdout=subprocess.PIPE).stdout)
        before, after = figures(wanted.binary, empty), figures(wanted.binary, full)
        print("| | empty | full |\n|---|---:|---:|")
        for name, value in after.items():
            print(f"| {name} | {before[name]:.3g} | {value:.3g} |" if name in before else f"| {name} | | {value:.3g} |")
        print(f"| file, MB (text {text / 1e6:.0f} MB) | {os.path.getsize(empty) / 1e6:.2g} | {os.path.getsize(full) / 1e6:.4g} |")


sys.exit(main())
