#!/usr/bin/env python3
"""What the daemon adds: to its start, to each delta, to a flood of them, to a tool turn, to memory. One run, one table.

    cargo build --profile dist && benches/daemon.py [target/dist/outrigger]

A provider of its own on loopback, the daemon between it and this client, and as the floor the same
client straight on the provider: compare columns of one run, not of two machines. Python's standard
library only. Nothing here asserts a time.
"""
import base64, http.server, json, os, socket, statistics, struct, subprocess, sys, tempfile, threading, time

RUNS, DELTAS, PACE, TURNS = 20, 400, 0.005, 30
FLOOD, STREAMS = 20_000, 50
now = time.perf_counter


class Provider(http.server.BaseHTTPRequestHandler):
    """Chat Completions: `deltas` streams stamped deltas, `tools N` calls bash N times with `: i`."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    asked, answered = [], []        # when a request was read, when its answer was written
    command = "true"

    flood = b"".join(b'data: {"choices":[{"index":0,"delta":{"content":"%04d"},"finish_reason":null}]}\n\n' % (i % 10_000)
                     for i in range(FLOOD))

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        Provider.asked.append(now())
        Provider.bytes = len(body)
        body = json.loads(body)
        users = [m for m in body["messages"] if m["role"] == "user"]
        word = users[-1]["content"] if isinstance(users[-1]["content"], str) else users[-1]["content"][0]["text"]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        done = sum(m["role"] == "tool" for m in body["messages"])
        if word.startswith("tools") and done < int(word.split()[1]):
            call = {"index": 0, "id": f"c{done}", "type": "function",
                    "function": {"name": "bash", "arguments": json.dumps({"command": f": {done}"})}}
            self.chunk({"tool_calls": [call]})
            self.chunk({}, "tool_calls")
        elif word == "command" and not done:
            call = {"index": 0, "id": "c", "type": "function",
                    "function": {"name": "bash", "arguments": json.dumps({"command": Provider.command})}}
            self.chunk({"tool_calls": [call]})
            self.chunk({}, "tool_calls")
        elif word == "flood":
            self.raw(Provider.flood)
            self.chunk({}, "stop")
        else:
            count, pace = {"deltas": (DELTAS, PACE), "slow": (250, 0.02)}.get(word, (1, 0))
            for _ in range(count):
                time.sleep(pace)
                self.chunk({"content": f"@{now():.9f};"})
            self.chunk({}, "stop")
        self.raw(b"data: [DONE]\n\n")
        self.raw(b"")
        Provider.answered.append(now())

    def chunk(self, delta, finish=None):
        event = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        self.raw(b"data: " + json.dumps(event).encode() + b"\n\n")

    def raw(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass        # a client that is done hangs up


class Daemon:
    """The daemon as a frontend starts it, and one socket to it."""

    def __init__(self, binary, port, sandbox="auto", settings=None):
        self.folder = tempfile.TemporaryDirectory()
        project = os.path.join(self.folder.name, "project")
        os.mkdir(project)
        config = os.path.join(self.folder.name, "config.json")
        with open(config, "w") as file:
            wanted = {"server": {"port": 0}, "project": {"root": project, "central": self.folder.name + "/central"},
                      "store": {"path": self.folder.name + "/state/outrigger.db"},
                       "chat": {"provider": "bench", "trust_level": "autonomous"},
                       "providers": {"bench": {"kind": "openai", "wire": "chat", "api_key": "bench", "model": "m",
                                               "base_url": f"http://127.0.0.1:{port}/v1"}},
                      "tools": {"bash": {"sandbox": sandbox}}}
            for section, keys in (settings or {}).items():
                wanted.setdefault(section, {}).update(keys)
            json.dump(self.configuration(wanted), file)
        self.began = began = now()
        self.process = subprocess.Popen([binary, "serve", "--config", config], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        line = self.process.stdout.readline()
        self.ready = now() - began
        self.line = json.loads(line)

    def configuration(self, wanted):
        return wanted

    def connect(self, query="", until=b"session:ready"):
        self.socket = socket.create_connection(("127.0.0.1", self.line["port"]))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /ws{query} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
                             f"Authorization: Bearer {self.line['token']}\r\n\r\n").encode())
        self.file = self.socket.makefile("rb")
        while self.file.readline() != b"\r\n":
            pass
        if until:
            self.session = json.loads(self.until(until)[-1][0])["payload"]["sessionId"]

    def send(self, frame):
        data, mask = json.dumps(frame).encode(), os.urandom(4)
        head = bytes([0x81, 0x80 | len(data)]) if len(data) < 126 else bytes([0x81, 0xFE]) + struct.pack(">H", len(data))
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def frame(self):
        first, length = self.file.read(2)
        length &= 127
        if length > 125:
            length = int.from_bytes(self.file.read(2 if length == 126 else 8), "big")
        return self.file.read(length), now()

    def until(self, marker):
        frames = []
        while not frames or marker not in frames[-1][0]:
            frames.append(self.frame())
        return frames

    def say(self, text):
        self.send({"type": "chat:send", "content": text, "conversationId": f"{text}{now()}"})
        return self.until(b"chat:stream-end")

    def pss(self):
        with open(f"/proc/{self.process.pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


def late(texts):
    """How late each stamped delta came, in milliseconds."""
    out = []
    for text, when in texts:
        for part in text.split("@")[1:]:
            out.append((when - float(part.split(";")[0])) * 1000)
    return sorted(out)


def floor_deltas(port):
    body = json.dumps({"messages": [{"role": "user", "content": "deltas"}]}).encode()
    link = socket.create_connection(("127.0.0.1", port))
    link.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    texts = []
    while b"[DONE]" not in (data := link.recv(65536)):
        texts.append((data.decode(), now()))
    return late(texts)


def cpu(pid):
    """Seconds of processor that a process has used, from the scheduler's own count."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def flood_floor(port):
    """Deltas a second, the client straight on the provider."""
    body = json.dumps({"messages": [{"role": "user", "content": "flood"}]}).encode()
    link = socket.create_connection(("127.0.0.1", port))
    link.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    tail, began = b"", now()
    while b"[DONE]" not in tail:
        tail = (tail + link.recv(1 << 16))[-64:]
    return FLOOD / (now() - began)


def flood(daemon):
    """Deltas a second at the client, and the daemon's seconds of processor for 10,000; the text is compared."""
    before, began = cpu(daemon.process.pid), now()
    frames = daemon.say("flood")
    used = cpu(daemon.process.pid) - before
    told = [(data, when) for data, when in frames if b'"chat:text-delta"' in data]
    text = "".join(json.loads(data)["payload"]["content"] for data, _ in told)
    assert text == "".join(f"{i % 10_000:04d}" for i in range(FLOOD)), "the text is not what the provider sent"
    return FLOOD / (told[-1][1] - began), used / FLOOD * 10_000


def request(daemon):
    """Milliseconds from a send to the provider having the request."""
    times = []
    for _ in range(RUNS):
        Provider.asked.clear()
        began = now()
        daemon.say("?")
        times.append((Provider.asked[0] - began) * 1000)
    return statistics.median(times)


def request_floor(port):
    body = json.dumps({"messages": [{"role": "user", "content": "?"}]}).encode()
    times = []
    for _ in range(RUNS):
        Provider.asked.clear()
        link = socket.create_connection(("127.0.0.1", port))
        began = now()
        link.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        while b"[DONE]" not in link.recv(65536):
            pass
        times.append((Provider.asked[0] - began) * 1000)
    return statistics.median(times)


def streaming(daemon):
    """Memory while many conversations stream 50 deltas a second each, MB PSS."""
    for i in range(STREAMS):
        daemon.send({"type": "chat:send", "content": "slow", "conversationId": f"s{i}"})
    ended, most, began = 0, 0, now()
    while ended < STREAMS:
        data, when = daemon.frame()
        ended += b'"chat:stream-end"' in data
        if when - began > 0.5:
            began, most = when, max(most, daemon.pss())
    return most


def turns(daemon):
    """Milliseconds from the provider's last byte of a turn to its next request."""
    Provider.asked.clear(), Provider.answered.clear()
    daemon.say(f"tools {TURNS}")
    return sorted((asked - answered) * 1000 for answered, asked in zip(Provider.answered, Provider.asked[1:]))


def spawn():
    began = now()
    subprocess.run(["/bin/bash", "--noprofile", "--norc", "-c", "true"], check=True)
    return (now() - began) * 1000


def at(values, share):
    return values[min(len(values) - 1, int(len(values) * share))]


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else "target/dist/outrigger"
    server = Server(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    starts = []
    for _ in range(RUNS):
        daemon = Daemon(binary, port)
        starts.append(daemon.ready * 1000)
        daemon.stop()
    daemon = Daemon(binary, port)
    daemon.connect()
    greeted = (now() - daemon.began) * 1000
    time.sleep(2)
    idle = daemon.pss()
    daemon.say("warm")
    requests = request_floor(port), request(daemon)
    frames = daemon.say("deltas")
    ours = late([(json.loads(data)["payload"]["content"], when) for data, when in frames if b'"chat:text-delta"' in data])
    floor = floor_deltas(port)
    floods = sorted(flood(daemon) for _ in range(5))[2]
    flood_floors = sorted(flood_floor(port) for _ in range(5))[2]
    many = streaming(daemon)
    shell = statistics.median(spawn() for _ in range(RUNS))
    sandboxed = turns(daemon)
    daemon.stop()
    bare = Daemon(binary, port, "off")
    bare.connect()
    bare.say("warm")
    plain = turns(bare)
    bare.stop()
    rows = [("spawn to ready line, ms, median", None, statistics.median(starts)),
            ("spawn to `session:ready`, sandbox tried, ms", None, greeted),
            ("send to request at the provider, ms, median", *requests),
            ("delta, provider to client, ms, median", at(floor, .5), at(ours, .5)),
            ("delta, provider to client, ms, 99th of 100", at(floor, .99), at(ours, .99)),
            ("flood of 20,000 deltas, thousands a second", flood_floors / 1000, floods[0] / 1000),
            ("processor for 10,000 deltas, s", None, floods[1]),
            ("tool turn, no sandbox, ms, median (floor: a bare shell)", shell, at(plain, .5)),
            ("tool turn, full sandbox, ms, median", shell, at(sandboxed, .5)),
            ("memory idle, MB PSS", None, idle),
            (f"memory, {STREAMS} conversations streaming, MB PSS", None, many),
            ("program, MB", None, os.path.getsize(binary) / 1e6)]
    print("| | floor | outrigger | ratio |\n|---|---:|---:|---:|")
    for what, least, found in rows:
        print(f"| {what} | {'' if least is None else f'{least:.3g}'} | {found:.3g} | {'' if least is None else f'{found / least:.2f}'} |")
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {os.uname().release}, {time.strftime('%F')}")


if __name__ == "__main__":
    main()
