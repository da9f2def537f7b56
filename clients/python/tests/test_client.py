"""The client against the daemon and its scripted model: OUTRIGGER_BIN names the program, or it is found as users find it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from websockets.asyncio.server import ServerConnection, serve

from outrigger import (
    Event,
    Outrigger,
    OutriggerError,
    RequestError,
    StartError,
    StreamEnd,
    TextDelta,
    ToolConfirm,
    ToolResult,
    find_binary,
)

T = TypeVar("T")
PROGRAM = find_binary()
SCRIPT = """
chunk: 100
steps:
  - when: { user: write, turn: 0 }
    play: [{ call: { name: file_write, input: { path: notes.txt, content: "first\\n" } } }]
  - when: { user: write, turn: 1 }
    play: [{ text: "I was told: {result}" }]
  - when: { user: wait }
    play: [{ text: "a" }, { pause: 10m }, { text: "b" }]
  - play: [{ text: "You said: {user}" }]
"""


def run(story: Coroutine[Any, Any, T]) -> T:
    """Runs a story; it fails, rather than hangs."""
    return asyncio.run(asyncio.wait_for(story, 60))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/README.md").write_text("# Demo\n")
    (tmp_path / "script.yaml").write_text(SCRIPT)
    return tmp_path


def options(place: Path) -> dict[str, Any]:
    # Nothing of this shell's environment: a key in it would choose another provider.
    env = {"PATH": os.environ["PATH"], "HOME": str(place), "OUTRIGGER_CHAT__DETECT_OLLAMA": "", "OUTRIGGER_STORE__PATH": str(place / "sessions.db")}
    return {"project": place / "project", "bin": PROGRAM, "env": env}


def scripted(place: Path) -> dict[str, Any]:
    config = {"providers": {"scripted": {"kind": "scripted", "script": str(place / "script.yaml")}}}
    (place / "config.json").write_text(json.dumps(config))
    return {**options(place), "args": ["--config", str(place / "config.json")]}


def test_a_conversation_with_an_approval(place: Path) -> None:
    async def story() -> list[Event]:
        events: list[Event] = []
        async with Outrigger.spawn(**options(place)) as daemon:
            assert daemon.ready["project"]["name"] == "project"
            async for event in daemon.ask("demo"):
                events.append(event)
                match event:
                    case ToolConfirm(tool_name="bash", danger="safe"):
                        assert event.input == {"command": "ls -la"} and event.reason and event.host is None
                        await daemon.approve(event)
        return events

    events = run(story())
    assert "Thank you. The command ran" in "".join(event.content for event in events if isinstance(event, TextDelta))
    results = [event for event in events if isinstance(event, ToolResult)]
    assert [(it.tool_name, it.status) for it in results] == [("file_read", "success"), ("bash", "success")]
    end = events[-1]
    assert isinstance(end, StreamEnd) and (end.stop_reason, end.turns, end.tool_calls) == ("end_turn", 3, 2)
    numbers = [event.seq for event in events if event.seq is not None]
    assert numbers == sorted(numbers)


def test_an_answer_may_be_no_or_another_input(place: Path) -> None:
    async def said(daemon: Outrigger, verdict: str) -> str:
        text = ""
        async for event in daemon.ask("write"):
            if isinstance(event, ToolConfirm):
                if verdict == "edit":
                    await daemon.approve(event, input={**event.input, "content": "second\n"})
                else:
                    await daemon.deny(event, "not on a Thursday")
            if isinstance(event, TextDelta):
                text += event.content
        return text

    async def story() -> None:
        async with Outrigger.spawn(**scripted(place)) as daemon:
            assert "not on a Thursday" in await said(daemon, "deny")
            assert not (place / "project/notes.txt").exists()
            await said(daemon, "edit")
            assert (place / "project/notes.txt").read_text() == "second\n"

    run(story())


def test_what_runs_is_stopped(place: Path) -> None:
    async def story() -> None:
        async with Outrigger.spawn(**scripted(place)) as daemon:
            async for event in daemon.ask("wait"):
                if isinstance(event, TextDelta):
                    await daemon.cancel()
            assert isinstance(event, StreamEnd) and event.stop_reason == "cancelled"

    run(story())


def test_requests_have_answers_or_errors(place: Path) -> None:
    async def story() -> None:
        async with Outrigger.spawn(**options(place)) as daemon:
            listed = await daemon.request("provider:list")
            assert listed["providers"][0]["id"] == "scripted"
            with pytest.raises(RequestError, match="nothing:there") as error:
                await daemon.request("nothing:there")
            assert error.value.code
            first, second = await asyncio.gather(daemon.request("session:ping"), daemon.request("session:status"))
            assert first != second
        with pytest.raises(RequestError, match="closed") as error:
            await daemon.request("session:ping")
        assert error.value.code == "closed"

    run(story())


def test_a_daemon_that_runs_is_connected_to(place: Path) -> None:
    async def story() -> None:
        async with Outrigger.spawn(**options(place)) as daemon:
            assert daemon._process is not None
            url, token = daemon._process.url, daemon._process.token
            async with Outrigger.connect(url, token) as other:
                assert other.session_id != daemon.session_id
                assert [event async for event in other.ask("hello")][-1].type == "chat:stream-end"
            async with Outrigger.connect(f"{url}?session={other.session_id}", token) as again:
                assert again.session_id == other.session_id
            for address, secret, expected in [
                (url, "wrong", "HTTP 401: the token is missing or wrong"),
                (f"{url}?projct=/x", token, "HTTP 400: .*did you mean `project`"),
            ]:
                with pytest.raises(OutriggerError, match=expected):
                    async with Outrigger.connect(address, secret):
                        pass
        with pytest.raises(OutriggerError, match="no connection to"):
            async with Outrigger.connect(url, token):
                pass

    run(story())


def test_a_daemon_that_dies_ends_what_waits(place: Path) -> None:
    async def story() -> None:
        async with Outrigger.spawn(**scripted(place)) as daemon:
            assert daemon._process is not None
            with pytest.raises(OutriggerError, match="the connection was lost"):
                async for event in daemon.ask("wait"):
                    if isinstance(event, TextDelta):
                        daemon._process._transport.kill()
            with pytest.raises(RequestError):
                await daemon.request("session:ping")

    run(story())


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is what is tried")
def test_the_daemon_ends_with_this_process(place: Path) -> None:
    program = f"""
import asyncio, json
from outrigger import Outrigger
async def main():
    async with Outrigger.spawn(project={str(place / "project")!r}, bin={PROGRAM!r}) as daemon:
        print(daemon._process.pid, flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env={**os.environ, "HOME": str(place)})
    assert parent.stdout is not None
    daemon = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()

    async def gone() -> None:
        while True:
            state = Path(f"/proc/{daemon}/stat")
            if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return
            await asyncio.sleep(0.01)

    if sys.platform == "linux":
        run(gone())


def test_it_comes_again_when_the_daemon_says_so() -> None:
    came = []

    async def daemon(socket: ServerConnection) -> None:
        came.append(asyncio.get_running_loop().time())
        if len(came) < 3:
            error = {"code": "rate_limited", "message": "too many", "retryAfterMs": 50}
            await socket.send(json.dumps({"type": "session:error", "payload": error}))
            return await socket.close(1013)
        await socket.send(json.dumps({"type": "session:ready", "seq": 1, "payload": {"sessionId": "s"}}))
        await socket.wait_closed()

    async def story() -> None:
        async with serve(daemon, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with Outrigger.connect(f"ws://127.0.0.1:{port}") as client:
                assert client.session_id == "s"

    run(story())
    assert len(came) == 3
    assert came[2] - came[0] >= 0.1


def test_a_daemon_that_does_not_start_says_why(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody waits for the end of what is not ready in time.
    monkeypatch.setattr("outrigger._process.END_SECONDS", 100_000)

    def fails(code: str, says: str, **more: Any) -> None:
        async def story() -> None:
            async with Outrigger.spawn(**{**options(place), **more}):
                pass

        with pytest.raises(StartError) as error:
            run(story())
        assert error.value.code == code
        assert re.search(says, str(error.value)), str(error.value)

    def stand_in(name: str, source: str) -> dict[str, Any]:
        """A program that is no daemon: Python, which runs this before it looks at its arguments."""
        (place / name).mkdir()
        (place / name / "sitecustomize.py").write_text(f"import os, subprocess, sys, time\n{source}\n")
        return {"bin": sys.executable, "env": {**env, "PYTHONPATH": str(place / name)}}

    env = options(place)["env"]
    fails("configuration", r"server\.max_connections", env={**env, "OUTRIGGER_SERVER__MAX_CONNECTIONS": "many"})
    fails("configuration", "--nonsense", args=["--nonsense"])
    fails("not_started", "could not be started.*OUTRIGGER_BIN", bin=place / "nothing")
    broke = "os.write(2, b'it broke\\n')"
    fails("ended", "exit code 7: it broke", **stand_in("silent", f"{broke}; os._exit(7)"))
    waits = "time.sleep(1000)"
    fails("timeout", "was not ready after 0.05 s", **stand_in("slow", waits), ready_timeout=0.05)
    fails("timeout", "was not ready after 1 s", **stand_in("deaf", f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {waits}"), ready_timeout=1)
    # The deadline is one over all of it: here the output has ended, and the program has not.
    fails("timeout", "was not ready after 1 s: it broke", **stand_in("mute", f"os.close(1); {broke}; {waits}"), ready_timeout=1)
    for number, line in enumerate(["hello", "null", "[]", '{"event":"ready"}', '{"event":"ready","url":"http://a/"}', "x" * 2_000_000]):
        says = stand_in(f"other{number}", f"print({line!r}, flush=True); {waits}")
        fails("not_started", f"is no Outrigger: its first line is b'{re.escape(line[:20])}", **says)
    # What it leaves behind holds its pipes open, and is not waited for.
    orphan = f"subprocess.Popen([sys.executable, '-S', '-c', 'import time; {waits}']).pid"
    fails("ended", "exit code 7: it broke", **stand_in("leaves", f"print({orphan}, file=open({str(place / 'left')!r}, 'w')); {broke}; os._exit(7)"))
    os.kill(int((place / "left").read_text()), signal.SIGTERM)


def test_the_program_is_found(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "outrigger.exe" if sys.platform == "win32" else "outrigger"
    assert find_binary({"OUTRIGGER_BIN": "/named"}) == "/named"
    monkeypatch.setattr("sysconfig.get_path", lambda *_, **__: str(place / "scripts"))
    monkeypatch.setattr("outrigger._binary.__file__", str(place / "lib/outrigger/_binary.py"))
    with pytest.raises(StartError, match="without a program for this system"):
        find_binary({"PATH": f".{os.pathsep}"})
    (place / "bin").mkdir()
    (place / "bin" / name).write_text("#!/usr/bin/env node\n")
    with pytest.raises(StartError):
        find_binary({"PATH": str(place / "bin")})
    (place / "bin" / name).write_bytes(b"\x7fELF")
    assert find_binary({"PATH": f".{os.pathsep}{place / 'bin'}"}) == str(place / "bin" / name)
    (place / "scripts").mkdir()
    (place / "scripts" / name).write_bytes(b"\x7fELF")
    assert find_binary({"PATH": str(place / "bin")}) == str(place / "scripts" / name)


def test_the_readme_runs_as_it_stands(place: Path) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    source = readme.split("```python\n")[1].split("```")[0]
    env = {**options(place)["env"], "OUTRIGGER_BIN": PROGRAM, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", source], cwd=place / "project", env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "[bash {'command': 'ls -la'}: " in done.stdout and "Thank you. The command ran" in done.stdout
