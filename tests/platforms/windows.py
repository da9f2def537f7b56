#!/usr/bin/env python3
"""The conversation of story.py with the program for Windows, under wine, and what is Windows' own besides.

    tests/platforms/windows.py --run 'wine outrigger.exe' --waiter wait.exe

`--waiter` is a program that starts itself once more and waits (`wait.c` beside this file); `.ci/wine` builds it. The prefix
has no PowerShell in its PATH, so that the shell is wine's cmd.exe.
"""
import argparse, json, os, shutil, subprocess, sys, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from story import Failed, PATIENCE, Socket, Story, expect, until

# What is passed on to wine, and nothing else of this environment.
PASSED = ["WINEPREFIX", "WINEDEBUG", "WINEARCH", "WINELOADER", "WINESERVER", "TMPDIR"]


class Windows(Story):
    def environment(self):
        return super().environment() | {"OUTRIGGER_STORE__PATH": self.named(os.path.join(self.place, "store", "sessions.sqlite"))}

    def ready(self):
        said = super().ready()
        seen = self.socket.seen[0]["payload"]
        self.session = seen["sessionId"]
        expect(seen["persistent"], f"sessions are not kept: {seen}")
        limits = seen["sandbox"]["limits"]
        expect(limits["memory"]["by"] == "job" and limits["processes"]["by"] == "job", f"no job object holds commands: {limits}")
        return said

    def outside(self):
        """Without the link: wine follows links of the Unix below it by itself, and shows none of them."""
        with open(os.path.join(self.place, "outside.txt"), "w") as file:
            file.write("not for the model")
        with open(os.path.join(self.project, ".env"), "w") as file:
            file.write("KEY=not for the model")
        outside = self.named(os.path.join(self.place, "outside.txt"))
        inside = self.named(os.path.join(self.project, "sub", "note.md"))
        slashes = outside.replace("\\", "/")
        paths = ["../outside.txt", "..\\outside.txt", "sub\\..\\..\\outside.txt", outside, slashes, outside.lower(),
                 "\\\\?\\" + outside, "\\\\.\\" + outside, "\\??\\" + outside, "/z" + slashes[2:], slashes[2:],
                 # On another machine; by the folder that a drive has.
                 "\\\\server\\share\\x", "//server/share/x", "\\\\localhost\\c$\\x", "\\\\?\\UNC\\server\\share\\x", "Z:outside.txt", "C:x",
                 # The deny list, in each way to write a name.
                 ".env", ".ENV", ".Env.", ".env ", ".env::$DATA", ".env:x", "ENV~1", ".\\.env", "SUB\\..\\.eNv",
                 # Devices, streams, what is dropped at the end, short names.
                 "NUL", "nul.txt", "sub/con", "sub\\AUX.md", "COM1", "COM\u00b9", "LPT9.log", "CONIN$", "sub/note.md:stream", "sub/note.md::$DATA",
                 inside + "::$DATA", "sub/note.md.", "sub/note.md ", "sub./note.md", "SUB~1/note.md", "sub/NOTE~1.MD", "sub/n*", "sub/n?te.md"]
        for path in paths:
            results, _, _ = self.say(("file_read", {"path": path}), answer=False)
            expect(results and results[0]["status"] != "success", f"file_read of {path!r} was not refused: {results}")
            expect("not for the model" not in json.dumps(results), f"file_read of {path!r} gave it: {results}")
        for path in ["nul.txt", "sub/aux", "new.txt:stream", "new.txt.", ".ENV", "C:new.txt", ".git\\hooks\\x", ".GIT/config"]:
            results, _, _ = self.say(("file_write", {"path": path, "content": "x"}))
            expect(results and results[0]["status"] != "success", f"file_write of {path!r} was not refused: {results}")
        names = sorted(os.listdir(self.project))
        expect(names == [".env", "sub"], f"the project holds {names}")
        for path in ["sub\\note.md", inside, inside.lower(), inside.replace("\\", "/"), "SUB/Note.MD"]:
            results, _, _ = self.say(("file_read", {"path": path}), answer=False)
            expect(results and results[0]["status"] == "success" and "three" in results[0]["result"], f"file_read of {path!r}: {results}")
        return f"{len(paths)} paths not read, 8 not written; five ways to write an allowed one"

    def whole(self):
        """A command's own files, its environment, its exit code; and one that is refused for its form."""
        results, asked, _ = self.say(("bash", {"command": "echo %TEMP%& echo %SystemRoot%& echo [%OUTRIGGER_PROVIDERS__STORY__API_KEY%]& exit 3"}))
        text = results[0]["result"]
        expect(asked == 1 and "exit code 3" in text, f"a command that exits with 3: {results}")
        expect("outrigger-" in text and "C:\\windows" in text, f"its environment: {text!r}")
        # What cmd.exe has no value for it leaves as it is.
        expect("[%OUTRIGGER" in text, f"a key is in a command's environment: {text!r}")
        results, asked, _ = self.say(("bash", {"command": "echo one\necho two"}))
        expect(results[0]["status"] != "success" and "more than one line" in json.dumps(results), f"two lines for cmd.exe: {results}")
        return "its own TEMP, no key, exit code 3; two lines refused"

    def kept(self):
        """The daemon ends and another one goes on with the session."""
        after = max(frame.get("seq", 0) for frame in self.socket.seen)
        self.socket.connection.close()
        self.daemon.stdin.close()
        expect(self.daemon.wait(PATIENCE) == 0, "the daemon did not end by the end of its stdin")
        ready, _ = self.start()
        self.socket = Socket(ready["port"], ready["token"], f"?session={self.session}&after={after}")
        payload = self.socket.await_("session:ready")
        expect(payload["sessionId"] == self.session and payload.get("resumed"), f"the session was not opened again: {payload}")
        # The new one has none of the events, and says instead how things stand.
        while (frame := self.socket.frame())["type"] != "chat:history-result":
            pass
        messages = frame["payload"]["messages"]
        expect(len(messages) > 10, f"its messages: {messages}")
        results, _, _ = self.say(("file_read", {"path": "sub/note.md"}))
        expect(results[0]["status"] == "success", f"after it was opened again: {results}")
        return f"{len(messages)} messages are there after a restart, and it goes on"

    def killed(self):
        """The daemon is killed hard, with a command that runs."""
        count = len(self.begin_waiting())
        self.daemon.kill()
        self.daemon.wait(PATIENCE)
        until(lambda: not self.running(), "the end of all processes of a command whose daemon was killed")
        ready, _ = self.start()
        self.socket = Socket(ready["port"], ready["token"])
        self.socket.await_("session:ready")
        return f"{count} processes of a command gone with the daemon that was killed"

    def parent(self):
        """The daemon ends with the process that it was told to watch."""
        # One of Windows' own, by its number there.
        waiter = subprocess.Popen([*self.command[:1], self.arguments.waiter, "pid", self.mark + "p"], stdout=subprocess.PIPE,
                                  env=self.environment(), cwd=self.place)
        number = waiter.stdout.readline().strip().decode()
        expect(number.isdigit(), f"the waiter said {number!r}")
        watching = subprocess.Popen([*self.command, "--port", "0", "--project-root", self.named(self.project), "--parent-pid", number,
                                     "--config", self.named(os.path.join(self.place, "config.toml"))],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log,
                                    env=self.environment() | {"OUTRIGGER_STORE__ENABLED": "false"}, cwd=self.place)
        try:
            line = watching.stdout.readline()
            expect(b'"ready"' in line, f"a daemon that watches a process: {line!r}")
            waiter.kill()
            waiter.wait(PATIENCE)
            expect(watching.wait(PATIENCE) == 0, f"it ended with {watching.returncode}")
        finally:
            for process in (waiter, watching):
                if process.poll() is None:
                    process.kill()
                    process.wait()
        return "ended with the process that it watched"

    def parts(self):
        return [("version", self.version), ("ready", self.ready), ("files", self.files), ("outside", self.outside),
                ("refused", self.refused), ("command", self.command_), ("whole", self.whole), ("cancel", self.cancel), ("kept", self.kept),
                ("killed", self.killed), ("parent", self.parent), ("end", self.end)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--run", required=True, help="wine and the program")
    parser.add_argument("--waiter", required=True, help="the program that waits, as a path of this machine")
    parser.add_argument("--mode", help="modes of the sandbox that may be there, with commas")
    parser.add_argument("--env", action="append", default=[], help="NAME=VALUE that it gets")
    parser.add_argument("--skip", default="", type=lambda text: text.split(","), help="parts, with commas")
    arguments = parser.parse_args()
    waiter = "Z:" + os.path.realpath(arguments.waiter).replace("/", "\\")
    for name, value in {"windows": True, "wine": True, "root": None, "place": None, "pass_env": PASSED, "tool": None, "refused": [],
                        "say": "echo said by a command", "said": "said by a command", "wait": f'"{waiter}" {{mark}}'}.items():
        setattr(arguments, name, value)
    story = Windows(arguments)
    began = time.monotonic()
    try:
        for name, part in story.parts():
            if name in arguments.skip:
                print(f"wine: {name}: *** SKIPPED ***", flush=True)
                continue
            try:
                print(f"wine: {name}: {part()}", flush=True)
            except (Failed, OSError, subprocess.TimeoutExpired, KeyError) as error:
                raise Failed(f"{name}: {error!r}") from error
        print(f"wine: all parts passed in {time.monotonic() - began:.0f} s")
    except Failed as failure:
        story.log.flush()
        with open(story.log.name, errors="replace") as log:
            print(f"--- the log's end ---\n{log.read()[-12000:]}\n---", file=sys.stderr)
        print(f"wine: FAILED: {failure}", file=sys.stderr)
        sys.exit(1)
    finally:
        story.close()
        shutil.rmtree(story.place, ignore_errors=True)


if __name__ == "__main__":
    main()
