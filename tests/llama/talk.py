"""A daemon in front of a llama.cpp, and what is said to it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from engine import Engine

from outrigger import Event, Outrigger, StreamEnd

T = TypeVar("T")
#: A test that hangs is a failure with a name. Most are done in a second or two.
DEADLINE = 120

#: The ways to llama.cpp: its name as a provider instance, and what the configuration says of it.
WAYS: dict[str, dict[str, str]] = {
    "chat": {"kind": "llamacpp"},
    "openai": {"kind": "openai"},
    # Without a name it would be a model of Anthropic's; llama.cpp takes any.
    "messages": {"kind": "anthropic", "api_key": "nobody", "model": "random"},
    "responses": {"kind": "llamacpp", "wire": "responses"},
}


def run(story: Coroutine[Any, Any, T]) -> T:
    """Runs a story; it fails, rather than hangs."""
    return asyncio.run(asyncio.wait_for(story, DEADLINE))


class Exchange:
    """The events of one exchange."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.end = events[-1]
        assert isinstance(self.end, StreamEnd), self.end

    def all(self, type: str) -> list[dict[str, Any]]:
        return [event.payload for event in self.events if event.type == type]

    def one(self, type: str) -> dict[str, Any]:
        found = self.all(type)
        assert len(found) == 1, (type, self.events)
        return found[0]

    def said(self, type: str = "chat:text-delta") -> str:
        return "".join(event["content"] for event in self.all(type))

    def ended(self, reason: str) -> None:
        """Fails unless it ended so, in the first attempt."""
        assert self.end.stop_reason == reason, self.events
        assert not self.all("chat:turn-discarded"), self.events
        assert "retrying" not in [state["state"] for state in self.all("chat:state")], self.events


class Talk:
    """A session with a daemon whose default is the instance `local`."""

    def __init__(self, daemon: Outrigger, place: Path) -> None:
        self.daemon = daemon
        self.place = place

    async def say(self, content: str, *, conversation: str = "default", **options: Any) -> Exchange:
        """Says something and refuses every call that asks; returns what came until the end."""
        events = []
        message = await self.daemon.send(content, conversation_id=conversation, options=options)
        async for event in self.daemon.events():
            if event.type == "chat:tool-confirm":
                await self.daemon.request("chat:tool-approve", {"toolId": event.payload["toolId"], "approved": False})
            # A notice is the session's.
            if event.message_id == message or event.type == "session:notice":
                events.append(event)
            if event.message_id == message and isinstance(event, StreamEnd):
                return Exchange(events)
        raise AssertionError(f"the daemon is gone: {self.daemon.log}")

    async def until(self, is_it: Callable[[Event], bool]) -> Event:
        """Reads events until one is it."""
        async for event in self.daemon.events():
            if is_it(event):
                return event
        raise AssertionError(f"the daemon is gone: {self.daemon.log}")


@asynccontextmanager
async def talk(place: Path, engine: Engine, way: str = "chat", provider: dict[str, Any] | None = None, **config: Any) -> AsyncIterator[Talk]:
    """Starts a daemon for one of the ways. `provider` are further keys of the instance, the rest are of the configuration."""
    project = place / "project"
    project.mkdir(parents=True, exist_ok=True)
    (project / "README.md").write_text("# Demo\n")
    base = engine.url if way == "messages" else f"{engine.url}/v1"
    whole = {
        "chat": {"provider": "local", "detect_ollama": ""},
        "providers": {"local": {**WAYS[way], "base_url": base, **(provider or {})}},
        **config,
    }
    (place / "config.json").write_text(json.dumps(whole))
    arguments = ["--config", str(place / "config.json"), "--record", str(place / "record")]
    # Nothing of this shell's environment: a key in it would choose another provider.
    environment = {"PATH": os.environ["PATH"], "HOME": str(place)}
    async with Outrigger.spawn(project=project, bin=os.environ["OUTRIGGER_BIN"], args=arguments, env=environment) as daemon:
        yield Talk(daemon, place)
