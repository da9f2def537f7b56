"""Serves a folder of files as GitHub serves those of a release, over HTTPS on loopback: releases.py FOLDER TAG CERTIFICATE KEY.

The repository is https://localhost:PORT/outrigger/outrigger; PORT is printed on a line of its own, and each request on stderr.
"""

import ssl
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

folder, tag, certificate, key = sys.argv[1:]
REPOSITORY = "/outrigger/outrigger"
FILES = f"{REPOSITORY}/releases/download/{tag}/"


class Releases(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def translate_path(self, path: str) -> str:
        # A name, and nothing that leads out of the folder.
        name = path.removeprefix(FILES) if path.startswith(FILES) else ""
        return str(Path(folder, name if name and "/" not in name else "there is no such file"))

    def send_head(self):
        if self.path != REPOSITORY:
            return super().send_head()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None


server = ThreadingHTTPServer(("127.0.0.1", 0), Releases)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
