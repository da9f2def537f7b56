"""The socket to the daemon: requests with answers, and events in their order."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from ._errors import OutriggerError, RequestError
from ._events import Event, StreamEnd, ToolConfirm, event_of
from ._process import Process

#: The largest frame that is taken: the daemon's own limit for what it sends is below it.
MOST_BYTES = 64 * 1024 * 1024
#: Events that wait for who reads them. More, and the connection is closed: the program does not read what it asked for.
MOST_EVENTS = 100_000


class Outrigger:
    """A connection to a daemon, in a session of its own. Made by ``spawn`` or ``connect``."""

    def __init__(self, socket: ClientConnection, process: Process | None) -> None:
        self._socket = socket
        self._process = process
        self._pending: dict[str, asyncio.Future[dict[str, Any]]] = {}
        # None is the end.
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._prefix = secrets.token_hex(4)
        self._count = 0
        self._reason = "the connection is closed"
        #: The payload of ``session:ready``: the session's id, the project, the sandbox that is in force.
        self.ready: dict[str, Any] = {}

    @classmethod
    @asynccontextmanager
    async def spawn(
        cls,
        *,
        project: str | os.PathLike[str],
        bin: str | os.PathLike[str] | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        ready_timeout: float = 30.0,
        on_log: Callable[[str], None] | None = None,
    ) -> AsyncIterator[Outrigger]:
        """Starts a daemon that works in ``project``, and ends it with the block.

        ``bin`` names the program, which is found by ``find_binary`` otherwise. ``args`` are more arguments of ``outrigger
        serve``. ``env`` takes the place of this process's environment, from which providers' keys come. ``on_log`` is given
        each line of the log. Raises ``StartError``.
        """
        process = await Process.start(project, bin, args, env, ready_timeout, on_log)
        try:
            async with cls._connected(process.url, process.token, process) as daemon:
                yield daemon
        finally:
            await process.close()

    @classmethod
    @asynccontextmanager
    async def connect(cls, url: str, token: str | None = None) -> AsyncIterator[Outrigger]:
        """Talks to a daemon that runs: the ``url`` and ``token`` of its ready line.

        Where too many come back to their sessions at once, it comes again after the pause that the daemon names.
        """
        async with cls._connected(url, token, None) as daemon:
            yield daemon

    @classmethod
    @asynccontextmanager
    async def _connected(cls, url: str, token: str | None, process: Process | None) -> AsyncIterator[Outrigger]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        told: int | None = 0
        while told is not None:
            await asyncio.sleep(told / 1000)
            try:
                # No proxy: the daemon is on this machine.
                socket = await connect(url, additional_headers=headers, max_size=MOST_BYTES, proxy=None)
            except (OSError, InvalidHandshake) as error:
                raise OutriggerError(f"no connection to {url}: {_why_not(error)}") from error
            daemon = cls(socket, process)
            reader = asyncio.create_task(daemon._read())
            try:
                first = await daemon._next()
                told = None if first is None else first.payload.get("retryAfterMs")
                if first is not None and first.type == "session:ready":
                    daemon.ready = first.payload
                    yield daemon
                elif told is None:
                    raise OutriggerError(f"{url} did not greet: {first or daemon._reason}")
            finally:
                await socket.close()
                await reader

    @property
    def log(self) -> tuple[str, ...]:
        """The end of the log of a daemon that was started here."""
        return () if self._process is None else self._process.log

    @property
    def session_id(self) -> str:
        """What to come back by: ``connect`` with ``?session=ID``."""
        return str(self.ready["sessionId"])

    async def request(self, type: str, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Sends any request of the protocol; returns the payload of its answer. Raises ``RequestError``."""
        self._count += 1
        name = f"{self._prefix}-{self._count}"
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._pending[name] = answer
        try:
            await self._socket.send(json.dumps({"type": type, "id": name, "payload": dict(payload or {})}))
            return await answer
        except ConnectionClosed:
            raise RequestError("closed", f"{type}: {self._reason}") from None
        finally:
            self._pending.pop(name, None)

    async def send(
        self,
        content: str | list[dict[str, Any]],
        *,
        conversation_id: str = "default",
        options: Mapping[str, Any] | None = None,
    ) -> str:
        """Says something; returns the id of its exchange. ``options`` are further fields of ``chat:send``."""
        payload = {**(options or {}), "conversationId": conversation_id, "content": content}
        return str((await self.request("chat:send", payload))["messageId"])

    async def events(self) -> AsyncIterator[Event]:
        """Gives each event once, in order, until the connection ends."""
        while (event := await self._next()) is not None:
            yield event

    async def ask(
        self,
        content: str | list[dict[str, Any]],
        *,
        conversation_id: str = "default",
        options: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[Event]:
        """Says something, and gives each event up to the end of its exchange. Questions have to be answered meanwhile."""
        message_id = await self.send(content, conversation_id=conversation_id, options=options)
        async for event in self.events():
            yield event
            if isinstance(event, StreamEnd) and event.message_id == message_id:
                return
        raise OutriggerError(self._reason)

    async def approve(
        self,
        confirm: ToolConfirm,
        *,
        input: Mapping[str, Any] | None = None,
        remember: str | None = None,
    ) -> None:
        """Lets a call run, or reach a host; with another ``input`` where one is given.

        ``remember`` (``conversation``, ``session``, ``project``, ``always``) has the answer count for later ones.
        """
        await self._answer(confirm, approved=True, input=input, remember=remember)

    async def deny(self, confirm: ToolConfirm, reason: str | None = None, *, remember: str | None = None) -> None:
        """Refuses it; the model reads the reason."""
        await self._answer(confirm, approved=False, reason=reason, remember=remember)

    async def cancel(self, conversation_id: str = "default") -> None:
        """Stops what runs in a conversation."""
        await self.request("chat:cancel", {"conversationId": conversation_id})

    async def _answer(self, confirm: ToolConfirm, **fields: Any) -> None:
        given = {name: value for name, value in {**fields, "host": confirm.host}.items() if value is not None}
        await self.request("chat:tool-approve", {"toolId": confirm.tool_id, **given})

    async def _next(self) -> Event | None:
        event = await self._events.get()
        if event is None:
            self._events.put_nowait(None)  # For whoever asks again.
        return event

    async def _read(self) -> None:
        try:
            async for text in self._socket:
                self._take(event_of(json.loads(text)))
                if self._events.qsize() > MOST_EVENTS:
                    self._reason = f"{MOST_EVENTS} events were not read, so the connection was closed: read events(), or ask()"
                    await self._socket.close()
        except ConnectionClosed as error:
            self._reason = f"the connection was lost: {error}"
        finally:
            for answer in self._pending.values():
                if not answer.done():
                    answer.set_exception(RequestError("closed", self._reason))
            self._events.put_nowait(None)

    def _take(self, event: Event) -> None:
        answer = None if event.reply_to is None else self._pending.get(event.reply_to)
        if answer is None:
            self._events.put_nowait(event)
        elif answer.done():
            pass  # Nobody waits any more.
        elif event.type in ("session:error", "chat:error"):
            answer.set_exception(RequestError(str(event.payload.get("code")), str(event.payload.get("message"))))
        else:
            answer.set_result(event.payload)


def _why_not(error: OSError | InvalidHandshake) -> str:
    """Why there is no connection: in the daemon's own words, where it has any."""
    if isinstance(error, InvalidStatus):
        try:
            said = json.loads(error.response.body or b"")
            return f"HTTP {error.response.status_code}: {said['message']}"
        except (ValueError, KeyError, TypeError):
            pass  # Another server's answer.
    return str(error)
