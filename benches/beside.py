#!/usr/bin/env python3
"""Two programs in turns, in one run: how long until they are ready, and what a tool turn takes.

    benches/beside.py OLD NEW [ROUNDS]

What `benches/daemon.py` measures of one, as the median of all rounds, and the ratio. OLD may be from before sessions were kept
(it knows no `store`); NEW runs with its store, which is there from the start before, and without, so that what keeping costs is
seen apart. Python's standard library only.
"""
import importlib.util, pathlib, statistics, sys, tempfile, threading

spec = importlib.util.spec_from_file_location("daemon", pathlib.Path(__file__).with_name("daemon.py"))
daemon = importlib.util.module_from_spec(spec)
spec.loader.exec_module(daemon)


class WithoutStore(daemon.Daemon):
    """One whose configuration has no section that older programs refuse."""

    def configuration(self, wanted):
        return {section: keys for section, keys in wanted.items() if section != "store"}


def measured(start, sandbox):
    """Milliseconds to the ready line, to `session:ready`, and of a tool turn."""
    it = start(sandbox)
    it.connect()
    ready = (daemon.now() - it.began) * 1000
    daemon.turns(it)
    turn = statistics.median(daemon.turns(it))
    it.stop()
    return it.ready * 1000, ready, turn


def main():
    old, new = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    server = daemon.Server(("127.0.0.1", 0), daemon.Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    state = tempfile.TemporaryDirectory()
    store = {"store": {"path": state.name + "/outrigger.db"}}
    columns = {
        "old": lambda sandbox: WithoutStore(old, port, sandbox),
        "new": lambda sandbox: daemon.Daemon(new, port, sandbox, store),
        "new, nothing kept": lambda sandbox: daemon.Daemon(new, port, sandbox, {"store": {"enabled": False}}),
    }
    times = {}
    measured(columns["new"], "off")
    for _ in range(rounds):
        times.setdefault(("a bare shell", ""), []).append(statistics.median(daemon.spawn() for _ in range(20)))
        for column, start in columns.items():
            for sandbox, shown in (("auto", "sandbox"), ("off", "no sandbox")):
                names = ("ready line", "session:ready", "tool turn")
                for name, value in zip(names, measured(start, sandbox)):
                    times.setdefault((f"{name}, {shown}", column), []).append(value)
    middle = {key: statistics.median(values) for key, values in times.items()}
    print("| ms, median of", rounds, "|", " | ".join(f"{column} | ratio" if column != "old" else column for column in columns), "|")
    print("|---|" + "---:|" * (2 * len(columns) - 1))
    for row in dict.fromkeys(name for name, column in middle if column):
        base = middle[row, "old"]
        cells = [f"{base:.2f}"]
        for column in list(columns)[1:]:
            cells += [f"{middle[row, column]:.2f}", f"{middle[row, column] / base:.2f}"]
        print("|", " | ".join([row, *cells]), "|")
    print(f"a bare shell: {middle['a bare shell', '']:.2f} ms")


main()
