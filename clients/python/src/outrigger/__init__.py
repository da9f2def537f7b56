"""The Outrigger daemon from Python: starts it, talks to it, answers its questions."""

from ._binary import find_binary
from ._client import Outrigger
from ._errors import OutriggerError, RequestError, StartError
from ._events import (
    ChatError,
    Event,
    StreamEnd,
    TextDelta,
    ThinkingDelta,
    ToolConfirm,
    ToolDelta,
    ToolResult,
    ToolStart,
)

__all__ = [
    "ChatError",
    "Event",
    "Outrigger",
    "OutriggerError",
    "RequestError",
    "StartError",
    "StreamEnd",
    "TextDelta",
    "ThinkingDelta",
    "ToolConfirm",
    "ToolDelta",
    "ToolResult",
    "ToolStart",
    "find_binary",
]
