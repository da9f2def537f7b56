"""Goes on in a session over a WebSocket: python3 resume.py HOST:PORT TOKEN SESSION. Only what Python has."""
import base64
import json
import os
import socket
import sys


def main() -> None:
    authority, token, session = sys.argv[1:]
    host, port = authority.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as line:
        key = base64.b64encode(os.urandom(16)).decode()
        line.sendall(
            f"GET /ws?session={session}&token={token} HTTP/1.1\r\nHost: {authority}\r\nConnection: Upgrade\r\n"
            f"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        read = line.makefile("rb")
        status = read.readline()
        assert b" 101 " in status, status
        while read.readline().strip():
            pass
        ready = frame(read)
        assert ready["type"] == "session:ready" and ready["payload"]["sessionId"] == session, ready
        assert ready["payload"]["resumed"], ready
        say(line, {"type": "session:ping", "id": "1"})
        while frame(read)["type"] != "session:ping-result":
            pass


def frame(read) -> dict:
    """Reads a frame of text; others are passed over."""
    while True:
        first, second = read.read(2)
        size = second & 0x7F
        if size == 126:
            size = int.from_bytes(read.read(2), "big")
        elif size == 127:
            size = int.from_bytes(read.read(8), "big")
        body = read.read(size)
        if first & 0x0F == 1:
            return json.loads(body)
        assert first & 0x0F != 8, body


def say(line: socket.socket, message: dict) -> None:
    """Sends a frame of text, masked as a client has to."""
    body = json.dumps(message).encode()
    assert len(body) < 126
    mask = os.urandom(4)
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(body))
    line.sendall(bytes([0x81, 0x80 | len(body)]) + mask + masked)


main()
