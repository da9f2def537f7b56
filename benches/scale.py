#!/usr/bin/env python3
"""What many sessions cost one daemon: memory for each, delays while some stream, and how soon all are back after a kill.

    cargo build --profile dist && benches/scale.py [--sessions 10000] [--streaming 200] [--store sqlite|postgres] [BINARY]

Opens so many sessions, each over a socket of its own, and has each of them say something; then some stream, and others,
which do nothing, are asked for an answer. At last the daemon is killed (`--end kill`) or ended (`--end term`) and started
anew on the same store, and every client comes back to its session as those of `clients/` do: after a pause with jitter
that grows, or after the pause that the daemon names (`session:error` with `retryAfterMs`). It is back when it has its own
session and an answer to a request. Exit code 1 where one is not within 30 s, or has another session than before.

The provider is a process of its own, and stamps each delta. Python's standard library only; `--store postgres` wants
Debian's PostgreSQL. Each side needs a descriptor for each socket: `ulimit -n` has to allow them.
"""
import argparse, asyncio, base64, itertools, json, os, random, re, resource, signal, statistics, subprocess, sys
import tempfile, time

import streams
from daemon import at, cpu
from postgres import Postgres

# How long after a start everybody has to be back.
BACK = 30
# How many do the same at once where nothing is measured by it.
AT_ONCE = 100
# Words of what is said, as often as those of a language are, so that it is as large in a store as what people say.
MADE_UP = random.Random(1)
WORDS = ["".join(MADE_UP.choices(["ba", "ke", "li", "mon", "u", "tor", "se", "dra", "wi", "ga"], k=1 + MADE_UP.randrange(4))) for _ in range(5_000)]
OFTEN = list(itertools.accumulate(1 / (rank + 2) for rank in range(5_000)))
# What a session says, and what is answered, in words: a short question and a page.
QUESTION, ANSWER = 40, 300
# What one that streams is sent: so many deltas a second, for so many seconds.
RATE, SECONDS = 20, 20
# How often a session that does nothing is asked, in seconds.
EVERY = 0.01
# Pauses of a client, as in clients/typescript, in seconds.
FIRST, LONGEST = 0.2, 5
now = time.perf_counter


def text(words):
    return " ".join(random.choices(WORDS, cum_weights=OFTEN, k=words))


async def answer(body, chunk):
    """A page at once, or stamped deltas for `stream`."""
    if "stream" in json.dumps(body["messages"][-1]["content"]):
        async for _ in streams.at_rate(RATE, RATE * SECONDS):
            await chunk({"content": f"@{now():.6f};"})
    else:
        await chunk({"content": text(ANSWER)})
    await chunk({}, "stop")


class Client:
    """One session and its socket, which comes back by itself while it `returns`."""

    def __init__(self, run):
        self.run, self.session, self.seq, self.attempt, self.epoch = run, None, 0, 0, 0
        self.transport, self.waits, self.returns, self.told = None, {}, False, None
        self.late, self.first, self.sent, self.back = [], None, None, None

    def open(self):
        """Opens a socket; returns what is done when it has its session and an answer."""
        self.waits = {}
        self.ready = asyncio.get_running_loop().create_future()
        self.connecting = asyncio.get_running_loop().create_task(self.connect())
        return self.ready

    async def connect(self):
        try:
            await asyncio.get_running_loop().create_connection(lambda: Socket(self), "127.0.0.1", self.run.port)
        except OSError as error:
            self.run.count(type(error).__name__)
            self.gone()

    def gone(self):
        """The socket is gone, or there was none."""
        self.transport = None
        if not self.returns:
            return
        told, self.told = self.told, None
        most = min(LONGEST, FIRST * 2 ** min(self.attempt, 10))
        pause = told if told is not None else most / 2 + random.random() * most / 2
        self.attempt += 1
        asyncio.get_running_loop().call_later(pause, self.open_again)

    def open_again(self):
        if self.returns:
            self.waits = {}
            self.connecting = asyncio.get_running_loop().create_task(self.connect())

    def send(self, frame):
        data = json.dumps(frame).encode()
        length = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0xFE]) + len(data).to_bytes(2, "big")
        # A mask of zeros is a mask: nobody stands between us and the daemon.
        self.transport.write(b"\x81" + length + bytes(4) + data)

    def ask(self, frame, until):
        """Sends a request; returns what is done when something of this type comes."""
        self.waits[until] = asyncio.get_running_loop().create_future()
        self.send(frame)
        return self.waits[until]

    async def say(self, text):
        self.first, self.sent = None, now()
        return await self.ask({"type": "chat:send", "content": text}, "chat:stream-end")

    async def ping(self):
        began = now()
        await self.ask({"type": "session:ping", "id": "p"}, "session:ping-result")
        return (now() - began) * 1000

    def take(self, data, when):
        event = json.loads(data)
        kind, payload = event["type"], event["payload"]
        self.seq = max(self.seq, event.get("seq", 0))
        if kind == "chat:text-delta":
            self.first = self.first or when
            for stamp in re.findall(r"@([\d.]+);", payload["content"]):
                self.late.append((when - float(stamp)) * 1000)
        elif kind == "session:ready":
            if self.session not in (None, payload["sessionId"]):
                self.run.wrong("another session than before", self.session)
            if self.session is None or event.get("seq") is None:
                self.session, self.epoch = payload["sessionId"], payload["epoch"]
                self.send({"type": "session:ping", "id": "ready"})
        elif kind in ("session:error", "chat:error"):
            self.told = payload.get("retryAfterMs") and payload["retryAfterMs"] / 1000
            self.run.count(f"{kind} {payload['code']}")
            if self.told is not None:
                self.run.told.append(self.told)
        if event.get("replyTo") == "ready" and not self.ready.done():
            self.back, self.attempt = now(), 0
            self.ready.set_result(None)
        waiting = self.waits.pop(kind, None)
        if waiting and not waiting.done():
            waiting.set_result(payload)


class Socket(asyncio.Protocol):
    """A WebSocket of a client, as little of one as will do."""

    def __init__(self, client):
        self.client, self.buffer, self.is_open = client, b"", False

    def connection_made(self, transport):
        self.transport = transport
        client = self.client
        where = f"?session={client.session}&after={client.seq}" if client.session else ""
        transport.write((f"GET /ws{where} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                         f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {client.run.key}\r\n"
                         f"Authorization: Bearer {client.run.token}\r\n\r\n").encode())

    def data_received(self, data):
        when = now()
        self.buffer += data
        if not self.is_open:
            head, found, rest = self.buffer.partition(b"\r\n\r\n")
            if not found:
                return
            if b" 101 " not in head.split(b"\r\n")[0]:
                self.client.run.count(head.split(b"\r\n")[0].decode())
                return self.transport.close()
            self.is_open, self.buffer, self.client.transport = True, rest, self.transport
        place = 0
        while len(self.buffer) - place >= 2:
            first, length, body = self.buffer[place], self.buffer[place + 1] & 127, place + 2
            if length > 125:
                size = 2 if length == 126 else 8
                if len(self.buffer) < body + size:
                    break
                length, body = int.from_bytes(self.buffer[body:body + size], "big"), body + size
            if len(self.buffer) < body + length:
                break
            data, place = self.buffer[body:body + length], body + length
            if first & 15 == 9:
                self.transport.write(b"\x8a\x80" + bytes(4))
            elif first & 15 == 8:
                self.client.run.count(f"closed with {int.from_bytes(data[:2], 'big')} {data[2:].decode()}")
            elif first & 15 == 1:
                self.client.take(data, when)
        self.buffer = self.buffer[place:]

    def connection_lost(self, error):
        if not self.is_open:
            self.client.run.count("hung up before an answer")
        if self.client.transport in (None, self.transport):
            self.client.gone()


class Run:
    """A daemon, its clients, and what was counted."""

    def __init__(self, options, folder, provider_port, database):
        self.options, self.folder, self.key = options, folder, base64.b64encode(os.urandom(16)).decode()
        self.counts, self.told, self.port, self.token, self.failed = {}, [], 0, "scale-" + "x" * 32, []
        os.mkdir(folder + "/project")
        store = {"url": database.url} if database else {"path": folder + "/state/outrigger.db"}
        most = options.sessions + 10
        self.wanted = {"server": {"max_connections": most, "max_sessions": most}, "store": store,
                       "project": {"root": folder + "/project", "central": folder + "/central"}, "chat": {"provider": "scale"},
                       "providers": {"scale": {"kind": "openai", "wire": "chat", "api_key": "scale", "model": "m",
                                               "base_url": f"http://127.0.0.1:{provider_port}/v1"}}}
        if options.name:
            self.wanted["cluster"] = {"name": options.name}
        self.clients = [Client(self) for _ in range(options.sessions)]

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def counted(self):
        said, self.counts = ", ".join(f"{what}: {count}" for what, count in sorted(self.counts.items())), {}
        return said or "nothing"

    def wrong(self, what, example):
        self.failed.append(f"{what}, e.g. {example}")

    def start(self):
        """Starts the daemon; returns how long it took to its ready line."""
        self.wanted["server"]["port"] = self.port
        with open(self.folder + "/config.json", "w") as file:
            json.dump(self.wanted, file)
        began = now()
        with open(self.folder + "/log", "a") as log:
            # It knows of our end by the pipe; the log is looked at where something is wrong.
            self.process = subprocess.Popen([self.options.binary, "serve", "--config", self.folder + "/config.json"],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                            env={**os.environ, "OUTRIGGER_TOKEN": self.token})
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the daemon does not start: " + open(self.folder + "/log").read()[-2_000:])
        self.port = json.loads(line)["port"]
        return now() - began

    def memory(self):
        """Returns PSS and RSS in kB."""
        with open(f"/proc/{self.process.pid}/smaps_rollup") as file:
            found = dict(re.findall(r"^(Pss|Rss): +(\d+)", file.read(), re.M))
        return int(found["Pss"]), int(found["Rss"])

    async def each(self, clients, work):
        """Does something for each client, some of them at once."""
        places = asyncio.Semaphore(AT_ONCE)

        async def one(client):
            async with places:
                await work(client)
        await asyncio.gather(*(one(client) for client in clients))

    def row(self, name, value):
        print(f"| {name} | {value} |", flush=True)

    def grown(self, name, before, count):
        """Tells memory, and by how much it grew for each."""
        found = self.memory()
        each = (found[0] - before[0]) / count
        self.row(name, f"{found[0] / 1024:.1f} PSS, {found[1] / 1024:.1f} RSS; {each:.1f} kB each")
        return found

    async def measure(self):
        options, clients = self.options, self.clients
        self.row("spawn to ready line, ms", f"{self.start() * 1000:.0f}")
        await clients[0].open()
        empty = self.memory()
        self.row("memory with one session, MB", f"{empty[0] / 1024:.1f} PSS, {empty[1] / 1024:.1f} RSS")
        began, before = now(), cpu(self.process.pid)
        await self.each(clients[1:], lambda client: client.open())
        self.row(f"{len(clients):,} sessions opened, {AT_ONCE} at once, s",
                 f"{now() - began:.1f} ({cpu(self.process.pid) - before:.1f} of processor)")
        opened = self.grown("memory, all idle and without a word, MB", empty, len(clients) - 1)
        said = self.database.counted() if self.database else None
        began, before = now(), cpu(self.process.pid)
        for _ in range(options.exchanges):
            await self.each(clients, lambda client: client.say(text(QUESTION)))
        count = len(clients) * options.exchanges
        self.row(f"{count:,} exchanges, {AT_ONCE} at once, s",
                 f"{now() - began:.1f}: {count / (now() - began):.0f} a second, {(cpu(self.process.pid) - before) / count * 1000:.2f} ms of processor each")
        if said:
            self.database_row(said, count, "an exchange, of many at once")
        self.grown(f"memory, each with {options.exchanges} exchanges of {len(text(QUESTION + ANSWER)):,} characters, MB", opened, len(clients))
        await self.streaming()
        await self.restart()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def database_row(self, before, count, what):
        after = self.database.counted()
        each = {name: (value - before[name]) / count for name, value in after.items()}
        self.row(f"of PostgreSQL for {what}", f"{each['transactions']:.2f} transactions, {each['inserted']:.1f} rows inserted, "
                 f"{each['updated']:.1f} updated, {each['wal'] / 1024:.1f} kB of log")

    async def streaming(self):
        """Has some stream, and asks others meanwhile."""
        loud, quiet = self.clients[:self.options.streaming], self.clients[self.options.streaming:] or self.clients
        quiet_alone = [await random.choice(quiet).ping() for _ in range(500)]
        before, began = cpu(self.process.pid), now()

        async def one(index, client):
            # Not all in one moment, as people do.
            await asyncio.sleep(index * 0.01)
            client.late.clear()
            await client.say("stream")
        running = asyncio.gather(*(one(index, client) for index, client in enumerate(loud)))
        pings, most = [], (0, 0)
        while not running.done():
            pings.append(await random.choice(quiet).ping())
            await asyncio.sleep(EVERY)
            if len(pings) % 200 == 0:
                most = max(most, self.memory())
        await running
        used = (cpu(self.process.pid) - before) / (now() - began)
        late = sorted(late for client in loud for late in client.late)
        if len(late) != len(loud) * RATE * SECONDS:
            self.wrong("deltas are missing", f"{len(late)} of {len(loud) * RATE * SECONDS}")
        firsts = sorted((client.first - client.sent) * 1000 for client in loud)
        row = lambda name, values: self.row(name, f"{at(values, .5):.2f}, {at(values, .99):.2f}")
        row("send to first delta, ms, median and 99th of 100", firsts)
        row(f"delta, provider to client, {len(loud)} stream {RATE} a second, ms, median and 99th of 100", late)
        row("an idle session is asked, nobody streams, ms, median and 99th of 100", sorted(quiet_alone))
        row(f"an idle session is asked, {len(loud)} stream, ms, median and 99th of 100", sorted(pings))
        self.row("processor meanwhile, of one", f"{used:.2f}")
        self.row("memory meanwhile, MB", f"{most[0] / 1024:.1f} PSS, {most[1] / 1024:.1f} RSS")

    async def restart(self):
        """Ends the daemon, starts it anew, and waits until everybody is back."""
        self.counted()
        loop = asyncio.get_running_loop()
        for client in self.clients:
            client.returns, client.ready, client.back = True, loop.create_future(), None
        killed = now()
        self.process.send_signal(signal.SIGKILL if self.options.end == "kill" else signal.SIGTERM)
        await loop.run_in_executor(None, self.process.wait)
        ended = now() - killed
        took = await loop.run_in_executor(None, self.start)
        ready, before = now(), time.process_time()
        if now() - killed > 1:
            self.row("end of the daemon, s", f"{ended:.1f}")
        await asyncio.wait([client.ready for client in self.clients], timeout=4 * BACK)
        times = sorted(client.back - ready for client in self.clients if client.back)
        for client in self.clients:
            client.returns = False
        if len(times) < len(self.clients):
            self.wrong("clients did not come back", f"{len(self.clients) - len(times)} of {len(self.clients)}")
        if times and times[-1] > BACK:
            self.wrong(f"not all came back within {BACK} s", f"{times[-1]:.1f} s")
        self.row("start after the end, to the ready line, ms", f"{took * 1000:.0f}")
        if times:
            self.row("from there until a client is back, s: median, 99th of 100, the last",
                     f"{at(times, .5):.2f}, {at(times, .99):.2f}, {times[-1]:.2f}")
        self.row("processor for that, s", f"{cpu(self.process.pid):.1f} of the daemon, {time.process_time() - before:.1f} of the clients")
        told = sorted(self.told)
        self.row("what clients met meanwhile", self.counted())
        if told:
            self.row("pauses named by the daemon, s: shortest, median, longest", f"{told[0]:.2f}, {at(told, .5):.2f}, {told[-1]:.2f}")
        found = self.memory()
        self.row("memory after it, MB", f"{found[0] / 1024:.1f} PSS, {found[1] / 1024:.1f} RSS; {found[0] / len(self.clients):.1f} kB each")
        for client in random.sample(self.clients, min(50, len(self.clients))):
            page = await client.ask({"type": "chat:history"}, "chat:history-result")
            least = 2 * self.options.exchanges
            if len(page["messages"]) < least or client.epoch != 2:
                self.wrong("a session lacks messages", f"{client.session} has {len(page['messages'])}, epoch {client.epoch}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", nargs="?", default="target/dist/outrigger")
    for name, default in [("sessions", 1000), ("streaming", 200), ("exchanges", 3)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--name", help="the daemon's `cluster.name`: without one a killed daemon keeps its sessions of PostgreSQL for 15 s")
    parser.add_argument("--end", choices=["kill", "term"], default="kill")
    options = parser.parse_args()
    options.streaming = min(options.streaming, options.sessions)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < options.sessions + 1000:
        sys.exit(f"{options.sessions} sockets need more descriptors than {hard}: raise `ulimit -Hn`")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    provider_process, provider_port = streams.start(answer)
    database = Postgres() if options.store == "postgres" else None
    with tempfile.TemporaryDirectory() as folder:
        run = Run(options, folder, provider_port, database)
        run.database = database
        print(f"| {options.sessions:,} sessions, {options.store} | |\n|---|---|")
        try:
            asyncio.run(run.measure())
        except Exception:
            print(open(folder + "/log").read()[-2_000:], file=sys.stderr)
            raise
        finally:
            run.process.kill()
        if database:
            sizes = database.sizes()
            count = options.sessions * options.exchanges + options.streaming
            run.row("tables, MB", f"{sum(size[1] for size in sizes) / 1e6:.1f}; {sum(size[1] for size in sizes) / count / 1000:.2f} kB for each exchange")
            for name, total, _, indexes, rows in sizes[:6]:
                run.row(f"table `{name}`, MB", f"{total / 1e6:.1f}, indexes {indexes / 1e6:.1f}; {rows:,} rows")
            database.stop()
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {os.uname().release}, {time.strftime('%F')}")
    print("\n".join(run.failed) or "all as it should be")
    sys.exit(bool(run.failed))


if __name__ == "__main__":
    main()
