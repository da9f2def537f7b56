"""The daemon as a child of this process.

The token is made here and handed over through stdin, so it is in no argument, no environment and no output. The pipe stays
open on purpose: however this process dies, its end ends the daemon and every process below it.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from ._binary import find_binary
from ._errors import StartError

#: Lines of the log that are kept for an error.
LOG_LINES = 20
#: The longest line that is read whole; what is longer is cut.
LINE_BYTES = 1024 * 1024
#: How long the daemon may take to end, in seconds. It gives what runs 5 s by default (`shutdown.grace`).
END_SECONDS = 15.0
#: How long the rest of the log is waited for after the daemon's end: what it started may hold the pipe open for ever.
LOG_SECONDS = 1.0


class _Child(asyncio.SubprocessProtocol):
    """The program's first line, the lines of its log, and its end.

    In the place of ``asyncio.create_subprocess_exec``, whose ``wait`` waits in some versions of Python for all who hold a pipe
    of the program, also after its end.
    """

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_line = on_line
        self._rest = {1: b"", 2: b""}
        #: The first line of its output; empty where there was none.
        self.first: asyncio.Future[bytes] = self._loop.create_future()
        #: That it has ended, and that its log is read.
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, rest = (self._rest[fd] + data).split(b"\n")
        if len(rest) > LINE_BYTES and fd == 1:
            lines.append(rest)
        self._rest[fd] = rest[:LINE_BYTES]
        for line in lines:
            self._take(fd, line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd in self._rest:
            rest, self._rest[fd] = self._rest[fd], b""
            if rest or fd == 1:
                self._take(fd, rest)

    def process_exited(self) -> None:
        self._loop.call_later(LOG_SECONDS, self._transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        # The program has ended, and so have its pipes.
        self._transport.close()
        self.ended.set()

    def _take(self, fd: int, line: bytes) -> None:
        if fd == 2:
            self._on_line(line.decode(errors="replace").rstrip("\r"))
        elif not self.first.done():
            self.first.set_result(line)


class Process:
    """A daemon that this process has started."""

    _child: _Child
    _transport: asyncio.SubprocessTransport
    _stdin: asyncio.WriteTransport

    def __init__(self, on_log: Callable[[str], None] | None) -> None:
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._on_log = on_log
        self.token = secrets.token_hex(32)
        self.url = ""

    @property
    def log(self) -> tuple[str, ...]:
        """The end of its log, a JSON object a line."""
        return tuple(self._log)

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._transport.get_pid()

    @classmethod
    async def start(
        cls,
        project: str | os.PathLike[str],
        bin: str | os.PathLike[str] | None,
        args: Sequence[str],
        env: Mapping[str, str] | None,
        ready_timeout: float,
        on_log: Callable[[str], None] | None,
    ) -> Process:
        """Starts a daemon; returns it once it listens."""
        program = find_binary(env) if bin is None else os.fspath(bin)
        line = ["serve", "--port", "0", "--token-stdin", "--ready", "json", "--project-root", os.fspath(project), *args]
        process = cls(on_log)
        try:
            process._transport, process._child = await asyncio.get_running_loop().subprocess_exec(
                lambda: _Child(process._take), program, *line, env=None if env is None else dict(env)
            )
        except OSError as error:
            raise StartError("not_started", f"{program} could not be started: {error}; does OUTRIGGER_BIN or bin= name a program?") from error
        # A pipe by default, as are its output and its log.
        process._stdin = cast(asyncio.WriteTransport, process._transport.get_pipe_transport(0))
        try:
            process.url = await process._ready(program, ready_timeout)
        except BaseException:
            await process.close(kill=True)
            raise
        return process

    async def _ready(self, program: str, timeout: float) -> str:
        self._stdin.write(f"{self.token}\n".encode())
        try:
            line = await asyncio.wait_for(self._first(program), timeout)
        except asyncio.TimeoutError:
            raise StartError("timeout", f"{program} was not ready after {timeout} s: {self._last()}", self.log) from None
        try:
            start: dict[str, Any] = json.loads(line)
            if start["event"] == "ready" and start["url"].startswith("ws://"):
                return str(start["url"])
            message = f"{start['message']}; {start['hint']}"
        except (ValueError, KeyError, TypeError, AttributeError):
            raise StartError("not_started", f"{program} is no Outrigger: its first line is {line[:80]!r}", self.log) from None
        raise StartError(str(start.get("code")), message, self.log)

    async def _first(self, program: str) -> bytes:
        """Returns the first line; raises once the program has ended without one, and its log is whole."""
        line = await self._child.first
        if not line:
            await self._child.ended.wait()
            code = self._transport.get_returncode()
            raise StartError("ended", f"{program} ended without a word, exit code {code}: {self._last()}", self.log)
        return line

    def _last(self) -> str:
        return self._log[-1] if self._log else "its log is empty"

    def _take(self, line: str) -> None:
        self._log.append(line)
        if self._on_log is None:
            return
        try:
            self._on_log(line)
        except Exception as error:
            # The log is read on: a daemon whose log nobody reads waits.
            told = {"message": "outrigger: on_log failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(told)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self._transport.kill()

    async def close(self, kill: bool = False) -> int | None:
        """Ends it and all that it runs; returns its exit code. With ``kill`` it has no time left."""
        self._stdin.close()
        if kill:
            self._kill()
        try:
            await asyncio.wait_for(self._child.ended.wait(), END_SECONDS)
        except asyncio.TimeoutError:
            self._kill()
            await self._child.ended.wait()
        return self._transport.get_returncode()
