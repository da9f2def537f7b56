#!/usr/bin/env python3
"""How cost grows: with the history, the conversations, a command's output, the tools, the replay log.

    cargo build --profile dist && benches/growth.py [target/dist/outrigger]

One table for each, on the provider and the client of `daemon.py`. The floor of a request is the same bytes
posted by this client straight to the provider. Nothing here asserts a time.
"""
import json, os, statistics, subprocess, sys, threading, time
from daemon import Daemon, Provider, Server, cpu, late, now

HISTORY = (1, 10, 100, 300, 1000)
CONVERSATIONS = (1, 10, 100, 1000)
OUTPUTS = (1_000, 1_000_000, 10_000_000, 100_000_000)
TOOLS = (0, 10, 100, 500)
EVENTS = (100, 1_000, 10_000, 30_000)
PARAGRAPH = "All work and no play makes a dull daemon. " * 24     # about 1 KB


def peak(pid):
    """Most memory resident so far, MB; begins anew with each call."""
    with open(f"/proc/{pid}/status") as file:
        most = next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
    with open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")
    return most


def table(title, head, rows):
    print(f"\n### {title}\n\n| " + " | ".join(head) + " |\n|" + "---:|" * len(head))
    for row in rows:
        print("| " + " | ".join(f"{cell:,.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell
                                for cell in row) + " |", flush=True)


def send(daemon, conversation, text):
    """One exchange; returns milliseconds from the frame written to the request read."""
    Provider.asked.clear()
    began = now()
    daemon.send({"type": "chat:send", "content": text, "conversationId": conversation})
    daemon.until(b"chat:stream-end")
    return (Provider.asked[0] - began) * 1000


def post(port, size):
    """Milliseconds from writing a request of `size` bytes to the provider having read it."""
    import socket
    body = json.dumps({"messages": [{"role": "user", "content": ""}]})
    body = body.replace('""', '"' + "x" * max(0, size - len(body)) + '"').encode()
    times = []
    for _ in range(7):
        Provider.asked.clear()
        link = socket.create_connection(("127.0.0.1", port))
        began = now()
        link.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        while b"[DONE]" not in link.recv(65536):
            pass
        times.append((Provider.asked[0] - began) * 1000)
        link.close()
    return statistics.median(times)


def history(binary, port):
    daemon = Daemon(binary, port)
    daemon.connect()
    rows, sends = [], 0
    for length in HISTORY:
        while sends < length - 1:
            send(daemon, "history", PARAGRAPH)
            sends += 1
        before, times = cpu(daemon.process.pid), []
        for _ in range(7):
            times.append(send(daemon, "history", "?"))
        used = (cpu(daemon.process.pid) - before) / 7 * 1000
        size = Provider.bytes
        rows.append((length, size / 1024, post(port, size), statistics.median(times), used, used / (size / 1024) * 1000))
    daemon.stop()
    table("Turns of history", ["turns", "request KB", "floor ms", "send to request ms", "CPU ms a turn", "CPU µs per KB"], rows)


def conversations(binary, port):
    daemon = Daemon(binary, port)
    daemon.connect()
    rows, open_ = [], 0
    for count in CONVERSATIONS:
        while open_ < count:
            send(daemon, f"c{open_}", PARAGRAPH)
            open_ += 1
        frames = daemon.say("deltas")
        times = late([(json.loads(data)["payload"]["content"], when) for data, when in frames if b'"chat:text-delta"' in data])
        before = cpu(daemon.process.pid)
        time.sleep(2)
        idle = (cpu(daemon.process.pid) - before) / 2 * 1000
        rows.append((count, statistics.median(times), times[int(len(times) * .99)], idle, daemon.pss(), daemon.pss() * 1024 / count))
    daemon.stop()
    table("Conversations that are open", ["conversations", "delta p50 ms", "p99 ms", "idle CPU ms/s", "PSS MB", "KB each"], rows)


def output(binary, port):
    daemon = Daemon(binary, port)
    daemon.connect()
    daemon.say("warm")
    rows = []
    for size in OUTPUTS:
        line = f"head -c {size} /dev/zero | tr '\\0' x"
        began = now()
        subprocess.run(["/bin/bash", "-c", line], stdout=subprocess.DEVNULL, check=True)
        floor = (now() - began) * 1000
        peak(daemon.process.pid)
        Provider.command = line
        Provider.asked.clear()
        daemon.send({"type": "chat:send", "content": "command", "conversationId": f"o{size}"})
        daemon.until(b"chat:stream-end")
        took = (Provider.asked[1] - Provider.answered[0]) * 1000
        rows.append((size // 1000, floor, took, peak(daemon.process.pid)))
    daemon.stop()
    table("A command's output (floor: a bare shell, its output thrown away)", ["output KB", "floor ms", "tool turn ms", "peak RSS MB"], rows)


def tools(binary, port):
    rows = []
    for count in TOOLS:
        schema = {"type": "object", "properties": {"path": {"type": "string", "description": "Where."},
                                                   "depth": {"type": "integer", "minimum": 0}}, "required": ["path"]}
        custom = {f"tool_{i}": {"description": f"Does the thing number {i}, and nothing else.", "input": schema,
                                "command": ["true"]} for i in range(count)}
        daemon = Daemon(binary, port, settings={"tools": {"custom": custom}})
        daemon.connect()
        daemon.say("warm")
        before, times = cpu(daemon.process.pid), []
        for i in range(11):
            times.append(send(daemon, f"t{i}", "?"))
        used = (cpu(daemon.process.pid) - before) / 11 * 1000
        rows.append((count, Provider.bytes / 1024, post(port, Provider.bytes), statistics.median(times), used, daemon.ready * 1000))
        daemon.stop()
    table("Tools beside the core ones", ["tools", "request KB", "floor ms", "send to request ms", "CPU ms a turn", "spawn to ready ms"], rows)


def replay(binary, port):
    rows = []
    for count in EVENTS:
        daemon = Daemon(binary, port, settings={"session": {"buffer_bytes": "64MiB"}})
        daemon.connect()
        session = daemon.session
        seq = sends = 0
        while seq < count:
            daemon.send({"type": "chat:send", "content": "?", "conversationId": f"c{sends % 100}"})
            seq = json.loads(daemon.until(b"chat:stream-end")[-1][0])["seq"]
            sends += 1
        daemon.socket.close()
        began = now()
        daemon.connect(f"?session={session}&after=0", until=None)
        first, size = None, 0
        while True:
            data, when = daemon.frame()
            first, size = first or when, size + len(data)
            if data and json.loads(data).get("seq") == seq:      # empty: a ping
                break
        took = now() - began
        rows.append((seq, size / 1024, (first - began) * 1000, took * 1000, took * 1e6 / seq))
        daemon.stop()
    table("A replay of all events, this client included", ["events", "KB", "first frame ms", "all ms", "µs an event"], rows)


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else "target/dist/outrigger"
    server = Server(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    for part in (history, conversations, output, tools, replay):
        if len(sys.argv) < 3 or part.__name__ in sys.argv[2:]:
            part(binary, port)
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {os.uname().release}, {time.strftime('%F')}")


if __name__ == "__main__":
    main()
