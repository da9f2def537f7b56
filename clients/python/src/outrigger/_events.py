"""Events of the daemon. Those that most programs look at have names for their fields; the rest has its payload."""

from __future__ import annotations

from typing import Any


class Event:
    """A frame from the daemon. A type or a field that is not known here is no error: the daemon may add some."""

    __slots__ = ("payload", "reply_to", "seq", "type")

    def __init__(self, type: str, payload: dict[str, Any], seq: int | None = None, reply_to: str | None = None) -> None:
        self.type = type
        self.payload = payload
        #: Counts from 1 in each session.
        self.seq = seq
        #: The id of the request that this answers.
        self.reply_to = reply_to

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.type!r}, {self.payload!r})"

    @property
    def conversation_id(self) -> str | None:
        return self.payload.get("conversationId")

    @property
    def message_id(self) -> str | None:
        """The exchange it belongs to."""
        return self.payload.get("messageId")


class _Delta(Event):
    @property
    def content(self) -> str:
        return str(self.payload["content"])


class TextDelta(_Delta):
    """A piece of the answer."""


class ThinkingDelta(_Delta):
    """A piece of what the model thinks before it answers."""


class _OfCall(Event):
    @property
    def tool_id(self) -> str:
        return str(self.payload["toolId"])

    @property
    def tool_name(self) -> str:
        return str(self.payload["toolName"])


class _WithInput(_OfCall):
    @property
    def input(self) -> dict[str, Any]:
        return dict(self.payload["input"])


class ToolStart(_WithInput):
    """A call begins to run."""


class ToolDelta(Event):
    """A piece of what a call prints."""

    @property
    def tool_id(self) -> str:
        return str(self.payload["toolId"])

    @property
    def chunk(self) -> str:
        return str(self.payload["chunk"])


class ToolResult(_OfCall):
    """What a call came to."""

    @property
    def status(self) -> str:
        return str(self.payload["status"])

    @property
    def result(self) -> str:
        return str(self.payload["result"])


class ToolConfirm(_WithInput):
    """The question whether a call may run, or whether it may reach a host. It lapses by itself."""

    @property
    def danger(self) -> str:
        """``safe``, ``warning``, ``dangerous``."""
        return str(self.payload["danger"]["level"])

    @property
    def reason(self) -> str:
        return str(self.payload["reason"])

    @property
    def preview(self) -> str | None:
        return self.payload.get("preview")

    @property
    def host(self) -> str | None:
        return self.payload.get("host")

    @property
    def expires_at(self) -> str | None:
        return self.payload.get("expiresAt")


class StreamEnd(Event):
    """The end of an exchange."""

    @property
    def stop_reason(self) -> str:
        return str(self.payload["stopReason"])

    @property
    def turns(self) -> int:
        return int(self.payload["turns"])

    @property
    def tool_calls(self) -> int:
        return int(self.payload["toolCalls"])

    @property
    def cost_usd(self) -> float | None:
        return self.payload.get("costUsd")


class ChatError(Event):
    """What went wrong in an exchange; its end follows."""

    @property
    def code(self) -> str:
        return str(self.payload["code"])

    @property
    def message(self) -> str:
        return str(self.payload["message"])

    @property
    def hint(self) -> str | None:
        return self.payload.get("hint")


_CLASSES: dict[str, type[Event]] = {
    "chat:text-delta": TextDelta,
    "chat:thinking-delta": ThinkingDelta,
    "chat:tool-start": ToolStart,
    "chat:tool-delta": ToolDelta,
    "chat:tool-result": ToolResult,
    "chat:tool-confirm": ToolConfirm,
    "chat:stream-end": StreamEnd,
    "chat:error": ChatError,
}


def event_of(frame: dict[str, Any]) -> Event:
    """Returns a frame as an event."""
    kind = str(frame.get("type", ""))
    reply_to = frame.get("replyTo")
    payload = frame.get("payload")
    return _CLASSES.get(kind, Event)(
        kind,
        payload if isinstance(payload, dict) else {},
        frame.get("seq"),
        None if reply_to is None else str(reply_to),
    )
