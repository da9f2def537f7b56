#!/usr/bin/env python3
"""Whether the daemon holds out: many conversations stream at once, and memory, descriptors and threads are watched.

    cargo build --profile dist && benches/soak.py [--seconds 60] [--conversations 1000] [--connections 50] [--rate 20] [BINARY]

A provider of its own on loopback streams deltas at the rate given to each conversation, in turns: a turn with a tool
call (`file_read`), a turn of text, and the next send. Each delta carries its number, so that a lost, doubled or
swapped one is seen; each call must have one result, each exchange one end, each session numbers without a gap. Told at
the end: what was lost, memory by second, what is left when every client is gone. Exit code 1 where something was lost,
memory grew after the tenth second, or something was left. Python's standard library only; the provider is a process
of its own, so that it does not stand in the client's way.
"""
import argparse, asyncio, base64, json, os, re, subprocess, sys, tempfile, time

import streams

# Text deltas of an exchange; with the turn of its tool call it takes some seconds.
DELTAS = 60
# What memory may grow by from the tenth second on: records of executions, of which the last 1,000 are kept, and the allocator.
GROWTH_MB = 24
# What a session keeps for a resume: so little that it is full, and grows no more, within the ten seconds. With the default,
# 8 MiB for each of 50 sessions, memory would grow for many minutes to that bound.
BUFFER = "64KiB"
# What has to be gone when every client is.
GONE = ("sessions", "conversations", "connections", "exchanges_running")


async def answer(body, chunk, rate):
    """A tool call for what the user says, numbered deltas for a result."""
    if body["messages"][-1]["role"] == "tool":
        async for number in streams.at_rate(rate, DELTAS):
            await chunk({"content": f"{number};"})
        return await chunk({}, "stop")
    call = {"index": 0, "id": f"c{len(body['messages'])}", "type": "function",
            "function": {"name": "file_read", "arguments": '{"path":"a.txt"}'}}
    await chunk({"tool_calls": [call]})
    await chunk({}, "tool_calls")


class Losses:
    """Counts what is right and what is not."""

    def __init__(self):
        self.exchanges = self.deltas = self.calls = 0
        self.wrong = {}

    def say(self, what, example):
        count, first = self.wrong.get(what, (0, example))
        self.wrong[what] = (count + 1, first)


class Client:
    """One socket with some of the conversations."""

    def __init__(self, line, names, losses, until):
        self.line, self.names, self.losses, self.until = line, names, losses, until
        self.text, self.results, self.running, self.seq = {}, {}, set(names), 0

    async def connect(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.line["port"], limit=1 << 24)
        key = base64.b64encode(os.urandom(16)).decode()
        self.writer.write((f"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
                           f"Authorization: Bearer {self.line['token']}\r\n\r\n").encode())
        await self.reader.readuntil(b"\r\n\r\n")

    def frame(self, opcode, data):
        length = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0xFE]) + len(data).to_bytes(2, "big")
        # A mask of zeros is a mask: nobody stands between us and the daemon.
        self.writer.write(bytes([0x80 | opcode]) + length + bytes(4) + data)

    def say(self, name):
        self.text[name], self.results[name] = "", 0
        send = {"type": "chat:send", "conversationId": name, "content": "go on", "limits": {"maxTurns": 5}, "history": []}
        self.frame(1, json.dumps(send).encode())

    async def run(self):
        for name in self.names:
            self.say(name)
            await asyncio.sleep(DELTAS / 20 / len(self.names))
        while self.running:
            first, length = await self.reader.readexactly(2)
            if length > 125:
                length = int.from_bytes(await self.reader.readexactly(2 if length == 126 else 8), "big")
            data = await self.reader.readexactly(length)
            if first & 15 == 9:
                self.frame(10, data)
            elif first & 15 == 1:
                self.take(json.loads(data))
            elif first & 15 == 8:
                return self.losses.say("a socket was closed", data[:80])

    def take(self, event):
        kind, payload = event["type"], event["payload"]
        if event["seq"] != self.seq + 1:
            self.losses.say("a number is missing", event["seq"])
        self.seq = event["seq"]
        name = payload.get("conversationId")
        if kind == "chat:text-delta":
            self.text[name] += payload["content"]
        elif kind == "chat:tool-result":
            self.results[name] += 1
            if payload["status"] != "success":
                self.losses.say("a call failed", payload)
        elif kind in ("chat:error", "session:error"):
            self.losses.say(kind, payload)
        elif kind == "chat:stream-end":
            self.losses.exchanges += 1
            self.losses.deltas += self.text[name].count(";")
            self.losses.calls += self.results[name]
            if self.text[name] != "".join(f"{number};" for number in range(DELTAS)):
                self.losses.say("text is lost or doubled", self.text[name][:200])
            if self.results[name] != 1:
                self.losses.say("results are lost or doubled", self.results[name])
            if time.monotonic() < self.until:
                self.say(name)
            else:
                self.running.discard(name)


def memory(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) / 1024


def left(pid):
    """Open descriptors (where we may look) and threads."""
    try:
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        descriptors = None
    return descriptors, len(os.listdir(f"/proc/{pid}/task"))


async def figures(line):
    reader, writer = await asyncio.open_connection("127.0.0.1", line["port"])
    writer.write(f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {line['token']}\r\nConnection: close\r\n\r\n".encode())
    text = (await reader.read(-1)).decode()
    writer.close()
    return {name: float(value) for name, value in re.findall(r"^outrigger_(\w+) ([\d.e+-]+)$", text, re.M)}


async def soak(options, line, pid, provider_process):
    losses, samples = Losses(), []
    until = time.monotonic() + options.seconds
    names = [f"c{number}" for number in range(options.conversations)]
    clients = [Client(line, names[at::options.connections], losses, until) for at in range(options.connections)]
    for client in clients:
        await client.connect()

    async def watch():
        while True:
            samples.append(memory(pid))
            await asyncio.sleep(1)

    before, tasks = left(pid), (await figures(line))["tasks"]
    watching = asyncio.create_task(watch())
    await asyncio.gather(*(client.run() for client in clients))
    watching.cancel()
    for client in clients:
        client.writer.close()
    # The daemon keeps idle connections to a provider for its next request; this one is gone.
    provider_process.terminate()
    # The sessions' grace period is a second here; then nothing of them may be left.
    for _ in range(30):
        await asyncio.sleep(1)
        counts = await figures(line)
        none = not any(counts[name] for name in GONE)
        if none and counts["tasks"] <= tasks and (before[0] is None or left(pid)[0] <= before[0]):
            break
    return losses, samples, before, left(pid), tasks, counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", nargs="?", default="target/dist/outrigger")
    for name, default in [("seconds", 60), ("conversations", 1000), ("connections", 50), ("rate", 20)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    provider_process, port = streams.start(answer, options.rate)
    with tempfile.TemporaryDirectory() as folder:
        project = os.path.join(folder, "project")
        os.mkdir(project)
        with open(os.path.join(project, "a.txt"), "w") as file:
            file.write("content\n")
        config = os.path.join(folder, "config.json")
        with open(config, "w") as file:
            json.dump({"server": {"port": 0}, "project": {"root": project, "central": folder + "/central"},
                       "store": {"path": folder + "/state/outrigger.db"},
                       "session": {"resume_grace": "1s", "buffer_bytes": BUFFER}, "chat": {"provider": "soak"},
                       "providers": {"soak": {"kind": "openai", "wire": "chat", "api_key": "soak", "model": "m",
                                              "base_url": f"http://127.0.0.1:{port}/v1"}}}, file)
        daemon = subprocess.Popen([options.binary, "serve", "--config", config], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        line = json.loads(daemon.stdout.readline())
        losses, samples, before, after, tasks, counts = asyncio.run(soak(options, line, daemon.pid, provider_process))
        daemon.stdin.close()
        daemon.wait()
    wrong = [f"{what}: {count} times, e.g. {example}" for what, (count, example) in losses.wrong.items()]
    steady = samples[10:options.seconds]
    growth = max(steady) - steady[0] if steady else 0
    if growth > GROWTH_MB:
        wrong.append(f"memory grew by {growth:.0f} MB after the tenth second")
    kept = {name: int(counts[name]) for name in GONE}
    if any(kept.values()):
        wrong.append(f"something is left: {kept}")
    if before[0] is not None and after[0] > before[0]:
        wrong.append(f"{after[0]} descriptors are open, {before[0]} were before the first send")
    print(f"{options.conversations} conversations on {options.connections} sockets for {options.seconds} s")
    print(f"exchanges {losses.exchanges}, deltas {losses.deltas} ({losses.deltas / options.seconds:.0f}/s), calls {losses.calls}")
    print("memory by second, MB:", " ".join(f"{sample:.0f}" for sample in samples))
    print(f"grown after the tenth second: {growth:.1f} MB")
    if counts["tasks"] > tasks:
        wrong.append(f"{counts['tasks']:.0f} tasks are left, {tasks:.0f} were before the first send")
    print(f"descriptors and threads before {before}, after {after}; tasks {tasks:.0f} and {counts['tasks']:.0f}; left: {kept}")
    print("\n".join(wrong) or "nothing lost, nothing left")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
