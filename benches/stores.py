#!/usr/bin/env python3
"""What keeping costs: daemons without a store, with the file and with PostgreSQL beside each other in one run.

    cargo build --profile dist && chrt -f 50 benches/stores.py [--rounds 15] [--idle 60] [BINARY]

Each row is measured in turns, so that what else the machine does is the same for each column; `chrt` keeps a machine that
builds meanwhile out of it, but for the disk. PostgreSQL is Debian's with its own settings (`fsync`, `synchronous_commit`), on
a socket of this machine. At last it is told what the daemon asks of it: for a send, for a turn with a tool, and while nobody
says anything.

Python's standard library only, and Debian's PostgreSQL.
"""
import argparse, os, statistics, threading, time

from daemon import TURNS, Daemon, Provider, Server, flood, now, request, turns
from postgres import Postgres


def exchange(daemon):
    """Returns how long it takes from a send to the end of its exchange, in milliseconds: both are kept by then."""
    times = []
    for _ in range(20):
        began = now()
        daemon.say("?")
        times.append((now() - began) * 1000)
    return statistics.median(times)


def session(daemon):
    """Returns how long it takes until a new session has said something, in milliseconds."""
    began = now()
    daemon.connect()
    daemon.say("?")
    return (now() - began) * 1000


def spent(database, work, count):
    """Returns what one of something costs the database."""
    size = lambda: {"size": sum(size[1] for size in database.sizes())}
    # What the vacuum writes is not counted, nor what is free already.
    before = {**size(), **database.counted()}
    work()
    after = {**database.counted(), **size()}
    return {name: (value - before[name]) / count for name, value in after.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", nargs="?", default="target/dist/outrigger")
    for name, default in [("rounds", 15), ("idle", 60)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    server = Server(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    database = Postgres()
    stores = {"none": {"enabled": False}, "file, `normal`": {"sync": "normal"}, "file, `full`": {"sync": "full"},
              "PostgreSQL": {"url": database.url}}
    daemons = [Daemon(options.binary, server.server_address[1], "off", settings={"store": store}) for store in stores.values()]
    measures = {"send to request at the provider, ms": request, "send to the end of its exchange, ms": exchange,
                "first word of a new session, to its end, ms": session,
                "tool turn, no sandbox, ms": lambda daemon: statistics.median(turns(daemon)),
                "flood of deltas, thousands a second": lambda daemon: flood(daemon)[0] / 1000,
                "processor for 10,000 deltas, ms": lambda daemon: flood(daemon)[1] * 1000}
    for daemon in daemons:
        daemon.connect()
        daemon.say("warm")
    print("| store | " + " | ".join(stores) + " |\n|---|" + "---:|" * len(stores))
    for name, measure in measures.items():
        found = [[measure(daemon) for daemon in daemons] for _ in range(options.rounds)]
        columns = [statistics.median(column) for column in zip(*found)]
        cells = [f"{value:.3g}" + (f" ({value / columns[0]:.2f})" if column else "") for column, value in enumerate(columns)]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    kept = daemons[-1]
    rows = {"a send and its answer": spent(database, lambda: [kept.say("?") for _ in range(200)], 200),
            "a turn with a tool": spent(database, lambda: [turns(kept) for _ in range(8)], 8 * TURNS),
            "a second in which nobody says anything": spent(database, lambda: time.sleep(options.idle), options.idle)}
    print("\n| what | transactions | rows inserted | updated | deleted | log of changes, kB | tables, kB |\n|---|---:|---:|---:|---:|---:|---:|")
    for name, one in rows.items():
        cells = [f"{one[it]:.2f}" for it in ("transactions", "inserted", "updated", "deleted")]
        print(f"| {name} | " + " | ".join(cells) + f" | {one['wal'] / 1024:.2f} | {one['size'] / 1024:.2f} |")
    for daemon in daemons:
        daemon.stop()
    database.stop()
    print(f"\nIn brackets: beside no store. {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {os.uname().release}, {time.strftime('%F')}")


if __name__ == "__main__":
    main()
