#!/usr/bin/env python3
"""What the daemon adds: to its start, to each delta, to a tool turn, to memory. One run, one table.

    cargo build --release && benches/daemon.py [target/release/outrigger]

A provider of its own on loopback, the daemon between it and this client, and as the floor the same
client straight on the provider: compare columns of one run, not of two machines. Python's standard
library only. Nothing here asserts a time.
"""
import base64, http.server, json, os, socket, statistics, struct, subprocess, sys, tempfile, threading, time

RUNS, DELTAS, PACE, TURNS = 20, 400, 0.005, 30
now = time.perf_counter


class Provider(http.server.BaseHTTPRequestHandler):
    """Chat Completions: `deltas` streams stamped deltas, `tools N` calls bash N times with `: i`."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    asked = []

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Provider.asked.append(now())
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
        else:
            for _ in range(DELTAS if word == "deltas" else 1):
                time.sleep(PACE if word == "deltas" else 0)
                self.chunk({"content": f"@{now():.9f};"})
            self.chunk({}, "stop")
        self.raw(b"data: [DONE]\n\n")
        self.raw(b"")
        Provider.asked.append(now())

    def chunk(self, delta, finish=None):
        event = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        self.raw(b"data: " + json.dumps(event).encode() + b"\n\n")

    def raw(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


class Daemon:
    """The daemon as a frontend starts it, and one socket to it."""

    def __init__(self, binary, port, sandbox="auto"):
        self.folder = tempfile.TemporaryDirectory()
        project = os.path.join(self.folder.name, "project")
        os.mkdir(project)
        config = os.path.join(self.folder.name, "config.json")
        with open(config, "w") as file:
            json.dump({"server": {"port": 0}, "project": {"root": project, "central": self.folder.name + "/central"},
                       "chat": {"provider": "bench", "trust_level": "autonomous"},
                       "providers": {"bench": {"kind": "openai", "wire": "chat", "api_key": "bench", "model": "m",
                                               "base_url": f"http://127.0.0.1:{port}/v1"}},
                       "tools": {"bash": {"sandbox": sandbox}}}, file)
        began = now()
        self.process = subprocess.Popen([binary, "serve", "--config", config], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        line = self.process.stdout.readline()
        self.ready = now() - began
        self.line = json.loads(line)

    def connect(self):
        self.socket = socket.create_connection(("127.0.0.1", self.line["port"]))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
                             f"Authorization: Bearer {self.line['token']}\r\n\r\n").encode())
        self.file = self.socket.makefile("rb")
        while self.file.readline() != b"\r\n":
            pass
        self.until(b"session:ready")

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


def turns(daemon):
    """Milliseconds from the provider's last byte of a turn to its next request."""
    Provider.asked.clear()
    daemon.say(f"tools {TURNS}")
    stamps = Provider.asked[1:-1]
    return sorted((b - a) * 1000 for a, b in zip(stamps[::2], stamps[1::2]))


def spawn():
    began = now()
    subprocess.run(["/bin/bash", "--noprofile", "--norc", "-c", "true"], check=True)
    return (now() - began) * 1000


def at(values, share):
    return values[min(len(values) - 1, int(len(values) * share))]


def main():
    binary = sys.argv[1] if len(sys.argv) > 1 else "target/release/outrigger"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    starts = []
    for _ in range(RUNS):
        daemon = Daemon(binary, port)
        starts.append(daemon.ready * 1000)
        daemon.stop()
    daemon, bare = Daemon(binary, port), Daemon(binary, port, "off")
    daemon.connect(), bare.connect()
    time.sleep(2)
    idle = daemon.pss()
    daemon.say("warm")
    frames = daemon.say("deltas")
    ours = late([(json.loads(data)["payload"]["content"], when) for data, when in frames if b'"chat:text-delta"' in data])
    floor = floor_deltas(port)
    shell = statistics.median(spawn() for _ in range(RUNS))
    sandboxed, plain = turns(daemon), turns(bare)
    daemon.stop(), bare.stop()
    rows = [("spawn to ready line, ms, median", "", f"{statistics.median(starts):.1f}"),
            ("delta, provider to client, ms, median", f"{at(floor, .5):.3f}", f"{at(ours, .5):.3f}"),
            ("delta, provider to client, ms, 99th of 100", f"{at(floor, .99):.3f}", f"{at(ours, .99):.3f}"),
            ("tool turn, no sandbox, ms, median (floor: a bare shell)", f"{shell:.2f}", f"{at(plain, .5):.2f}"),
            ("tool turn, full sandbox, ms, median", f"{shell:.2f}", f"{at(sandboxed, .5):.2f}"),
            ("idle memory, MB PSS", "", f"{idle:.1f}")]
    print("| | floor | outrigger |\n|---|---:|---:|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {os.uname().release}, {time.strftime('%F')}")


if __name__ == "__main__":
    main()
