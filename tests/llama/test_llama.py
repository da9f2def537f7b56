"""Outrigger in front of a real llama.cpp, whose model is of random weights (`model.py`).

`SAY`, `CALL`, `THINK`, `FORM` and `LONG` in what the user says begin the chains of that model. Everything else is real: the HTTP server, its parsers of
templates, calls and thinking, its grammars, its slots.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import engine as engines
import model
import pytest
from engine import WINDOW, Engine
from talk import WAYS, Exchange, run, talk

from outrigger import Event, TextDelta

SAID = "".join(model.SAID)
THOUGHT = "".join(model.THOUGHT)
#: One tool that changes nothing and takes nothing that has to be there.
LIST = {"file_list": {"allowed": True}}
SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer"}, "ok": {"type": "boolean"}},
    "required": ["count", "ok"],
    "additionalProperties": False,
}
#: More than calls of noise come to.
CALLS = 2000
#: An exchange that adds some 420 tokens to its conversation, of which the user said one word.
GROWS = {"toolPermissions": LIST, "limits": {"contextReserve": 100}, "maxTokens": 400}
#: Windows of servers that are soon full: for one answer, and for a conversation.
TINY, SMALL = 2048, 4096

each_way = pytest.mark.parametrize("way", WAYS)
#: The three that look up what the server is.
recognised = pytest.mark.parametrize("way", [way for way in WAYS if way != "messages"])
#: One that knows the window from the start, and one that does not.
by_window = pytest.mark.parametrize("way", ["chat", "messages"])


@pytest.fixture(scope="session")
def tiny(weights: Path) -> Iterator[Engine]:
    with engines.started(weights, slots=1, window=TINY) as engine:
        yield engine


@pytest.fixture(scope="session")
def small(weights: Path) -> Iterator[Engine]:
    with engines.started(weights, slots=1, window=SMALL) as engine:
        yield engine


@each_way
def test_an_answer_is_whole_and_counted(engine: Engine, place: Path, way: str) -> None:
    async def story() -> tuple[Exchange, Exchange]:
        async with talk(place, engine, way) as session:
            return await session.say("SAY"), await session.say("SAY it again")

    first, second = run(story())
    for exchange in (first, second):
        exchange.ended("end_turn")
        assert exchange.said() == SAID
        assert exchange.one("chat:usage")["outputTokens"] == len(model.SAID) + 1
    # The second prompt begins as the first one did, and that was still in the slot.
    usage = second.one("chat:usage")
    assert 0 < first.one("chat:usage")["inputTokens"] - 50 < usage["cacheReadTokens"] < usage["inputTokens"]


@each_way
def test_thinking_is_told_from_the_answer(engine: Engine, place: Path, way: str) -> None:
    async def story() -> Exchange:
        async with talk(place, engine, way) as session:
            return await session.say("THINK", toolPermissions=LIST)

    exchange = run(story())
    exchange.ended("end_turn")
    assert (exchange.said("chat:thinking-delta"), exchange.said()) == (THOUGHT, SAID)


@each_way
def test_a_call_by_grammar_runs_a_tool(engine: Engine, place: Path, way: str) -> None:
    async def story() -> tuple[dict, Exchange, Exchange]:
        async with talk(place, engine, way) as session:
            tools = (await session.daemon.request("tool:list"))["tools"]
            schema = next(tool["inputSchema"] for tool in tools if tool["name"] == "file_list")
            options = {"toolPermissions": LIST, "maxTokens": CALLS}
            return schema, await session.say("CALL", **options), await session.say("SAY", **options)

    schema, called, after = run(story())
    called.ended("end_turn")
    assert called.end.turns == 2 and called.said() == SAID
    results = called.all("chat:tool-result")
    assert results and {result["toolName"] for result in results} == {"file_list"}
    # What a random model asks for need not be there, but it is what the schema allows.
    assert not [result for result in results if "cut off" in result["result"]], results
    for start in called.all("chat:tool-start"):
        assert set(start["input"]) <= set(schema["properties"]), start
    # The history with the call and its result is accepted.
    after.ended("end_turn")
    assert after.said() == SAID


@each_way
def test_the_grammar_takes_every_tool(engine: Engine, place: Path, way: str) -> None:
    async def story() -> tuple[list[str], Exchange]:
        async with talk(place, engine, way) as session:
            return session.daemon.ready["tools"], await session.say("CALL", trustLevel="supervised", maxTokens=CALLS)

    tools, exchange = run(story())
    exchange.ended("end_turn")
    results = exchange.all("chat:tool-result")
    assert results and {result["toolName"] for result in results} <= set(tools)
    # Nobody allowed one.
    assert not exchange.all("chat:tool-start")


@recognised
def test_a_schema_holds_the_answer(engine: Engine, place: Path, way: str) -> None:
    async def story() -> Exchange:
        async with talk(place, engine, way) as session:
            # All that the model does by itself is to begin with a brace, not with a thought: the grammar makes noise fit.
            options = {"toolPermissions": {"file_list": {"allowed": False}}, "maxTokens": CALLS}
            return await session.say("FORM", output={"schema": SCHEMA}, **options)

    exchange = run(story())
    exchange.ended("end_turn")
    assert exchange.end.turns == 1, exchange.events
    output = exchange.one("chat:output")["output"]
    assert isinstance(output["count"], int) and isinstance(output["ok"], bool) and len(output) == 2


@each_way
def test_an_answer_that_was_cut_says_so(engine: Engine, place: Path, way: str) -> None:
    async def story() -> Exchange:
        async with talk(place, engine, way) as session:
            return await session.say("LONG", toolPermissions=LIST, maxTokens=20)

    exchange = run(story())
    exchange.ended("max_tokens")
    assert exchange.one("chat:usage")["outputTokens"] == 20


@each_way
def test_an_answer_without_end_ends_with_the_window(tiny: Engine, place: Path, way: str) -> None:
    async def story() -> Exchange:
        async with talk(place, tiny, way) as session:
            return await session.say("LONG", toolPermissions=LIST)

    exchange = run(story())
    exchange.ended("max_tokens")
    usage = exchange.one("chat:usage")
    assert usage["inputTokens"] + usage["outputTokens"] == TINY


@each_way
def test_what_does_not_fit_is_an_overflow_with_advice(engine: Engine, place: Path, way: str) -> None:
    async def story() -> Exchange:
        async with talk(place, engine, way) as session:
            return await session.say("word " * 2 * WINDOW)

    exchange = run(story())
    exchange.ended("error")
    error = exchange.one("chat:error")
    assert error["code"] == "context_overflow" and error["httpStatus"] == 400 and not error["retryable"], error
    assert f"exceeds the available context size ({WINDOW} tokens)" in error["message"], error
    assert "llama-server -c" in error["hint"], error


@by_window
def test_a_conversation_that_fills_the_window_is_compacted(small: Engine, place: Path, way: str) -> None:
    async def story() -> list[Exchange]:
        async with talk(place, small, way) as session:
            return [await session.say("LONG", **GROWS) for _ in range(10)]

    exchanges = run(story())
    for exchange in exchanges:
        exchange.ended("max_tokens")
        # No answer is cut short by the window, once that is known.
        assert exchange.one("chat:usage")["outputTokens"] == GROWS["maxTokens"] or way == "messages"
    done = [compaction for exchange in exchanges for compaction in exchange.all("chat:compaction") if compaction["phase"] == "done"]
    assert done
    # Where nobody told the window before, the first refusal does.
    triggers = {compaction["trigger"] for compaction in done}
    assert triggers <= {"auto", "overflow"}, done
    assert exchanges[-1].one("chat:usage")["context"]["window"] == SMALL


@by_window
def test_without_compaction_a_full_window_is_said(small: Engine, place: Path, way: str) -> None:
    async def story() -> list[Exchange]:
        async with talk(place, small, way, compaction={"enabled": False}) as session:
            return [await session.say("LONG", **GROWS) for _ in range(10)]

    exchanges = run(story())
    exchanges[0].ended("max_tokens")
    assert not [compaction for exchange in exchanges for compaction in exchange.all("chat:compaction")]
    last = exchanges[-1]
    # Nothing is sent where the window is known to be full; else the server says so.
    assert last.end.stop_reason in ("context_budget", "error"), last.events
    if last.end.stop_reason == "error":
        assert last.one("chat:error")["code"] == "context_overflow", last.events


@each_way
def test_a_cancel_frees_the_slot(engine: Engine, place: Path, way: str) -> None:
    async def story() -> Exchange:
        async with talk(place, engine, way) as session:
            await session.daemon.send("LONG", options={"toolPermissions": LIST})
            # The answer has no end by itself: what came of it was streamed.
            await session.until(lambda event: isinstance(event, TextDelta))
            assert engine.busy() == 1
            await session.daemon.cancel()
            end = await session.until(lambda event: event.type == "chat:stream-end")
            assert end.payload["stopReason"] == "cancelled"
            await engine.until_busy(0)
            return await session.say("SAY", toolPermissions=LIST)

    exchange = run(story())
    exchange.ended("end_turn")
    assert exchange.said() == SAID


def test_two_at_once_and_a_third_that_waits(engine: Engine, place: Path) -> None:
    async def story() -> str:
        async with talk(place, engine) as session:
            options = {"toolPermissions": LIST}
            for name in ("a", "b"):
                await session.daemon.send("LONG", conversation_id=name, options=options)
            spoke: set[str | None] = set()

            def both(event: Event) -> bool:
                if isinstance(event, TextDelta):
                    spoke.add(event.conversation_id)
                return len(spoke) == 2

            await session.until(both)
            assert engine.busy() == 2
            # There is no slot for it, and no answer before one is free.
            await session.daemon.send("SAY", conversation_id="c", options=options)
            await session.daemon.cancel("a")
            said = ""

            def third(event: Event) -> bool:
                nonlocal said
                if event.conversation_id == "c" and isinstance(event, TextDelta):
                    said += event.content
                return event.conversation_id == "c" and event.type == "chat:stream-end"

            end = await session.until(third)
            assert end.payload["stopReason"] == "end_turn", end
            await session.daemon.cancel("b")
            await engine.until_busy(0)
            return said

    assert run(story()) == SAID


@each_way
def test_the_window_is_that_of_a_slot(engine: Engine, place: Path, way: str) -> None:
    async def story() -> tuple[dict, Exchange]:
        async with talk(place, engine, way) as session:
            models = (await session.daemon.request("model:list", {"provider": "local"}))["models"]
            return models[0], await session.say("SAY", toolPermissions=LIST)

    listed, exchange = run(story())
    # The model was made for a larger one, and all slots together have more.
    assert engine.window() == WINDOW < model.TRAINED
    assert listed["contextWindow"] == WINDOW and listed["supportsTools"], listed
    assert exchange.one("chat:usage")["context"]["window"] == WINDOW


@recognised
def test_a_template_without_tools_is_noticed(weights: Path, place: Path, way: str) -> None:
    async def story(engine: Engine) -> tuple[dict, Exchange]:
        async with talk(place, engine, way) as session:
            models = (await session.daemon.request("model:list", {"provider": "local"}))["models"]
            return models[0], await session.say("hello", maxTokens=5)

    with engines.started(weights, "--chat-template", "chatml") as engine:
        listed, exchange = run(story(engine))
    assert not listed["supportsTools"], listed
    assert "model_no_tools" in [notice["code"] for notice in exchange.all("session:notice")], exchange.events
    request = json.loads((place / "record/0001-local.request.json").read_text())
    assert "tools" not in request


def test_a_key_that_is_asked_for(weights: Path, place: Path) -> None:
    async def story(engine: Engine) -> tuple[Exchange, Exchange]:
        async with talk(place, engine, provider={"model": "random"}) as session:
            refused = await session.say("SAY", toolPermissions=LIST)
            await session.daemon.request("provider:configure", {"provider": "local", "apiKey": "right"})
            return refused, await session.say("SAY", toolPermissions=LIST)

    with engines.started(weights, "--api-key", "right") as engine:
        refused, answered = run(story(engine))
    refused.ended("error")
    assert refused.one("chat:error")["code"] == "provider_auth"
    answered.ended("end_turn")


def test_the_doctor_sees_it(engine: Engine, place: Path) -> None:
    async def story() -> None:
        async with talk(place, engine):
            pass

    run(story())
    command = [os.environ["OUTRIGGER_BIN"], "doctor", "--config", str(place / "config.json")]
    environment = {"PATH": os.environ["PATH"], "HOME": str(place)}
    said = subprocess.run(command, cwd=place / "project", env=environment, capture_output=True, text=True).stdout
    line = next(line for line in said.splitlines() if line.split()[1:3] == ["provider", "local"])
    assert f"with a window of {WINDOW} tokens and tools" in line, said
