#!/usr/bin/env python3
"""Whether a proxy before two daemons sends each session to one of them: hashing.py FRONT FIRST SECOND COMMAND…

COMMAND is the proxy, which listens at the port FRONT. Two servers at the ports FIRST and SECOND, which say their port, stand for
the daemons: what becomes of a session that comes to the wrong one is tried in tests/daemon/kept. Python's standard library alone.
"""
import http.server
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

SESSIONS, TIMES, DEADLINE = 40, 4, 60


class Backend(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = str(self.server.server_address[1]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        pass  # Who only looks whether it lives hangs up.


def begin(port: int) -> Server:
    server = Server(("127.0.0.1", port), Backend)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def ask(front: int, session: str | None) -> int | None:
    """Returns the port of the server that answered; nothing where the proxy had none."""
    query = f"?after=0&session={session}" if session else ""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{front}/ws{query}", timeout=20) as answer:
            return int(answer.read())
    except (urllib.error.URLError, OSError):
        return None


def until(what: str, is_so) -> None:
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < DEADLINE, f"{what}: not within {DEADLINE} s"
        time.sleep(0.1)


def main() -> None:
    front, first, second = map(int, sys.argv[1:4])
    servers = {port: begin(port) for port in (first, second)}
    sessions = [f"session-{number}" for number in range(SESSIONS)]
    with subprocess.Popen(sys.argv[4:], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT) as proxy:
        try:
            until("both are asked", lambda: {ask(front, it) for it in sessions} == {first, second})
            places = {session: {ask(front, session) for _ in range(TIMES)} for session in sessions}
            moved = {session: ports for session, ports in places.items() if len(ports) != 1}
            assert not moved, f"they were at several: {moved}"
            assert {ask(front, None) for _ in range(SESSIONS)} == {first, second}, "new sessions are all at one"
            # One is gone: its sessions are at the other one, whose own stay there.
            servers[first].shutdown()
            servers[first].server_close()
            until("all are at the other one", lambda: all(ask(front, it) == second for it in sessions))
        finally:
            proxy.terminate()
    at_first = sum(ports == {first} for ports in places.values())
    print(f"{SESSIONS} sessions, each at one of two: {at_first} and {SESSIONS - at_first}; all at one when the other is gone")


main()
