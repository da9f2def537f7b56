#!/usr/bin/env python3
"""What a flood of deltas costs through the Agent Client Protocol, beside the WebSocket, in one run.

    cargo build --profile dist && benches/acp.py [BINARY]

A provider on loopback sends 20,000 deltas at once, to a session of the daemon's and to one of `outrigger acp`, in turns; the
median of the rounds is told: processor time of the program, and deltas a second at the client. Also how soon `initialize` is answered
after the start. Python's standard library only.
"""
import json, os, statistics, subprocess, sys, tempfile, threading

from daemon import FLOOD, Daemon, Provider, Server, cpu, flood, now

ROUNDS = 9
STARTS = 15


class Agent:
    """`outrigger acp`, and a session of it."""

    def __init__(self, binary, port):
        self.folder = tempfile.TemporaryDirectory()
        self.project = os.path.realpath(os.path.join(self.folder.name, "project"))
        os.mkdir(self.project)
        config = os.path.join(self.folder.name, "config.json")
        with open(config, "w") as file:
            json.dump({"project": {"root": self.project, "central": self.folder.name + "/central"},
                       "store": {"path": self.folder.name + "/state/outrigger.db"},
                       "chat": {"provider": "bench", "trust_level": "autonomous"},
                       "providers": {"bench": {"kind": "openai", "wire": "chat", "api_key": "bench", "model": "m",
                                               "base_url": f"http://127.0.0.1:{port}/v1"}}}, file)
        began = now()
        self.process = subprocess.Popen([binary, "acp", "--config", config], stdin=subprocess.PIPE, cwd=self.project,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.requests = 0
        self.ask("initialize", {"protocolVersion": 1})
        self.introduced = now() - began

    def ask(self, method, params):
        self.requests += 1
        frame = {"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params}
        self.process.stdin.write(json.dumps(frame).encode() + b"\n")
        self.process.stdin.flush()
        # Nothing is read but what ends it, so that this client costs little.
        answer = b'"id":%d,' % self.requests
        while answer not in (line := self.process.stdout.readline()):
            pass
        return json.loads(line)["result"]

    def open(self):
        self.session = self.ask("session/new", {"cwd": self.project, "mcpServers": []})["sessionId"]

    def flood(self):
        """Returns deltas a second, and processor seconds for 10,000 of them."""
        used, began = cpu(self.process.pid), now()
        self.ask("session/prompt", {"sessionId": self.session, "prompt": [{"type": "text", "text": "flood"}]})
        took = now() - began
        return FLOOD / took, (cpu(self.process.pid) - used) / FLOOD * 10_000

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


def main():
    binary = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "target/dist/outrigger")
    server = Server(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    starts = []
    for _ in range(STARTS):
        agent = Agent(binary, port)
        starts.append(agent.introduced * 1000)
        agent.stop()
    daemon, agent = Daemon(binary, port), Agent(binary, port)
    daemon.connect()
    agent.open()
    flood(daemon), agent.flood()
    rounds = [(flood(daemon), agent.flood()) for _ in range(ROUNDS)]
    daemon.stop()
    agent.stop()
    print("| | WebSocket | acp | ratio |\n|---|---:|---:|---:|")
    for name, index in [("flood of 20,000 deltas, thousands a second", 0), ("processor for 10,000 deltas, ms", 1)]:
        pairs = [statistics.median(ours[index] for ours in column) * (0.001 if index == 0 else 1000) for column in zip(*rounds)]
        print(f"| {name} | {pairs[0]:.3g} | {pairs[1]:.3g} | {pairs[1] / pairs[0]:.2f} |")
    print(f"| start to the answer to `initialize`, ms, median |  | {statistics.median(starts):.3g} |  |")


if __name__ == "__main__":
    main()
