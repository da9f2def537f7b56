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
from typing import Any

from ._binary import find_binary
from ._errors import StartError

#: Lines of the log that are kept for an error.
LOG_LINES = 20
#: The longest line that is read whole.
LINE_BYTES = 1024 * 1024
#: How long the daemon may take to end, in seconds. It gives what runs 5 s by default (`shutdown.grace`).
END_SECONDS = 15.0


class Process:
    """A daemon that this process has started."""

    def __init__(self, child: asyncio.subprocess.Process, on_log: Callable[[str], None] | None) -> None:
        self._child = child
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._on_log = on_log
        self._reader = asyncio.create_task(self._read_log())
        self.token = secrets.token_hex(32)
        self.url = ""

    @property
    def log(self) -> tuple[str, ...]:
        """The end of its log, a JSON object a line."""
        return tuple(self._log)

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
        pipe = asyncio.subprocess.PIPE
        try:
            child = await asyncio.create_subprocess_exec(
                program, *line, stdin=pipe, stdout=pipe, stderr=pipe, env=None if env is None else dict(env), limit=LINE_BYTES
            )
        except OSError as error:
            raise StartError("not_started", f"{program} could not be started: {error}; does OUTRIGGER_BIN or bin= name a program?") from error
        process = cls(child, on_log)
        try:
            process.url = await process._ready(program, ready_timeout)
        except BaseException:
            await process.close(kill=True)
            raise
        return process

    async def _ready(self, program: str, timeout: float) -> str:
        assert self._child.stdin is not None and self._child.stdout is not None
        try:
            self._child.stdin.write(f"{self.token}\n".encode())
            line = await asyncio.wait_for(self._child.stdout.readline(), timeout)
        except asyncio.TimeoutError:
            raise StartError("timeout", f"{program} was not ready after {timeout} s: {self._last()}", self.log) from None
        if not line:
            code = await self._child.wait()
            await self._reader
            raise StartError("ended", f"{program} ended without a word, exit code {code}: {self._last()}", self.log)
        try:
            start: dict[str, Any] = json.loads(line)
            if start["event"] == "ready":
                return str(start["url"])
            message = f"{start['message']}; {start['hint']}"
        except (ValueError, KeyError, TypeError):
            raise StartError("not_started", f"{program} is no Outrigger: its first line is {line[:80]!r}", self.log) from None
        raise StartError(str(start.get("code")), message, self.log)

    def _last(self) -> str:
        return self._log[-1] if self._log else "its log is empty"

    async def _read_log(self) -> None:
        assert self._child.stderr is not None
        while True:
            try:
                line = await self._child.stderr.readline()
            except ValueError:
                continue  # Longer than is read; the buffer was emptied.
            if not line:
                return
            text = line.decode(errors="replace").rstrip("\r\n")
            self._log.append(text)
            if self._on_log is None:
                continue
            try:
                self._on_log(text)
            except Exception as error:
                # The log is read on: a daemon whose log nobody reads waits.
                told = {"message": "outrigger: on_log failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(told)

    async def close(self, kill: bool = False) -> int:
        """Ends it and all that it runs; returns its exit code."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        if kill and self._child.returncode is None:
            self._child.terminate()
        try:
            code = await asyncio.wait_for(self._child.wait(), END_SECONDS)
        except asyncio.TimeoutError:
            self._child.kill()
            code = await self._child.wait()
        await self._reader
        return code
