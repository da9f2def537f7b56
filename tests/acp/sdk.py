"""The protocol's SDK for Python as a client: on stdin and stdout, and on the daemon's WebSocket."""

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import acp
from acp.schema import AllowedOutcome, RequestPermissionResponse
from acp.stdio import spawn_agent_process
from acp.ws import create_websocket_stream

HERE = pathlib.Path(__file__).parent
PROGRAM = os.environ["OUTRIGGER"]
DEADLINE = 60


class Client:
    """Notes what it is told, and says yes or no to each question."""

    def __init__(self, kind):
        self.kind, self.said, self.kinds, self.began = kind, "", [], asyncio.Event()

    async def session_update(self, session_id, update, **_):
        self.kinds.append(update.session_update)
        if update.session_update == "agent_message_chunk":
            self.said += update.content.text
            if self.said.endswith("I begin"):
                self.began.set()

    async def request_permission(self, session_id, tool_call, options, **_):
        option = next(it for it in options if it.kind == self.kind)
        outcome = AllowedOutcome(outcome="selected", option_id=option.option_id)
        return RequestPermissionResponse(outcome=outcome)

    def on_connect(self, agent):
        pass


def folder():
    place = pathlib.Path(tempfile.mkdtemp(prefix="outrigger-acp-"))
    (place / "project").mkdir()
    (place / "project" / "a.txt").write_text("hello\n")
    config = {
        "server": {"port": 0},
        "project": {"root": str(place / "project"), "central": str(place / "central")},
        "store": {"path": str(place / "state" / "outrigger.db")},
        "chat": {"provider": "script"},
        "providers": {"script": {"kind": "scripted", "script": str(HERE / "script.yaml")}},
    }
    (place / "config.json").write_text(json.dumps(config))
    return place


async def story(agent, client, place, there):
    """What each way of connecting has to be able to do."""
    cwd = str(place / "project")
    introduced = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
    assert introduced.protocol_version == 1, introduced
    session = (await agent.new_session(cwd=cwd, mcp_servers=[])).session_id
    text = lambda words: agent.prompt(session_id=session, prompt=[acp.text_block(words)])
    assert (await text("two calls")).stop_reason == "end_turn"
    assert client.said.endswith("Both are done."), client.said
    assert client.kinds.count("tool_call") == 2, client.kinds
    await text("write")
    assert (place / "project" / "b.txt").exists() == there, client.said
    waiting = asyncio.ensure_future(text("wait"))
    await client.began.wait()
    await agent.cancel(session_id=session)
    assert (await waiting).stop_reason == "cancelled"
    try:
        await agent.prompt(session_id="nobody", prompt=[acp.text_block("hi")])
        raise AssertionError("a session that there is not took a prompt")
    except acp.RequestError as error:
        assert error.code == -32002, error
    return session


async def on_stdio():
    place, client = folder(), Client("allow_once")
    arguments = ["acp", "--config", str(place / "config.json")]
    environment = {**os.environ, "HOME": str(place)}
    async with spawn_agent_process(client, PROGRAM, *arguments, env=environment, cwd=place / "project") as (agent, _):
        session = await story(agent, client, place, True)
    again = Client("allow_once")
    async with spawn_agent_process(again, PROGRAM, *arguments, env=environment, cwd=place / "project") as (agent, _):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        await agent.load_session(cwd=str(place / "project"), session_id=session, mcp_servers=[])
    assert again.kinds.count("user_message_chunk") == 3, again.kinds
    assert "Both are done." in again.said, again.said


async def on_websocket():
    place, client = folder(), Client("reject_once")
    daemon = subprocess.Popen(
        [PROGRAM, "serve", "--config", str(place / "config.json")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": str(place)},
    )
    try:
        ready = json.loads(daemon.stdout.readline())
        url = ready["url"].removesuffix("/ws") + "/acp"
        stream = await create_websocket_stream(url, headers={"Authorization": f"Bearer {ready['token']}"})
        agent = acp.connect_to_agent(client, stream)
        await story(agent, client, place, False)
        await agent.close()
    finally:
        daemon.stdin.close()
        daemon.wait(timeout=DEADLINE)


for name, part in [("stdio", on_stdio), ("WebSocket", on_websocket)]:
    asyncio.run(asyncio.wait_for(part(), DEADLINE))
    print(f"{name}: passed")
sys.exit(0)
