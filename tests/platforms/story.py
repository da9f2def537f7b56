#!/usr/bin/env python3
"""One conversation with a program of any target: what a frontend would see of it, asserted.

    tests/platforms/story.py --run './outrigger'
    tests/platforms/story.py --run 'qemu-aarch64-static ./outrigger'
    tests/platforms/story.py --run './outrigger.exe' --windows
    tests/platforms/story.py --run 'wine64 ./outrigger.exe' --windows --wine --pass-env WINEPREFIX

Parts, each a line of output: version, ready, files, outside, refused, command, cancel, killed, end. `--skip PART,…` leaves some out, and
says so. A provider of its own on loopback plays the model, so that HTTP is tried as well. Where there is no shell (an
empty container), `--tool PROGRAM` has the commands be tools of one's own that run that program.

Every wait has a deadline with a message. Python's standard library only. Exit code 1 with the reason where a part failed.
"""
import argparse, base64, json, os, queue, re, shlex, shutil, signal, socket, subprocess, sys, tempfile, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The longest that any one thing is waited for: emulators are slow, and machines are loaded.
PATIENCE = float(os.environ.get("OUTRIGGER_PATIENCE", "90"))


class Failed(Exception):
    """What did not hold, for the person who reads the log."""


def expect(holds, what):
    if not holds:
        raise Failed(what)


def until(found, what):
    """Returns what `found` returns as soon as that is something; it is asked again and again."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if (value := found()) not in (None, False):
            return value
        time.sleep(0.05)
    raise Failed(f"not within {PATIENCE:.0f} s: {what}")


def by_proc():
    """Processes as (number, command line), by Linux' /proc; here and below without those that are dead and wait for their parent."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    line = file.read()
                with open(f"/proc/{entry}/stat", "rb") as file:
                    state = file.read().rsplit(b")", 1)[1].split()[0]
            except OSError:
                continue
            if state != b"Z":
                yield int(entry), line.decode(errors="replace")


def by_ps():
    """The same by ps, for macOS. `ww`: it would cut lines at 80 characters. One `-o` each: what follows a `=` may be a heading."""
    listed = subprocess.run(["ps", "-axww", "-o", "pid=", "-o", "stat=", "-o", "command="], capture_output=True, timeout=PATIENCE, check=True)
    for line in listed.stdout.decode(errors="replace").splitlines():
        parts = line.split(None, 2)
        if len(parts) == 3 and not parts[1].startswith("Z"):
            yield int(parts[0]), parts[2]


def by_powershell():
    """The same on Windows. A command line that nobody may read is null."""
    script = ("[Console]::OutputEncoding=[Text.Encoding]::UTF8; "
              "Get-CimInstance Win32_Process | Select-Object ProcessId,CommandLine | ConvertTo-Json -Compress")
    listed = subprocess.run(["powershell", "-NoLogo", "-NoProfile", "-NonInteractive", "-Command", script],
                            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=True)
    for process in json.loads(listed.stdout.decode("utf-8-sig", errors="replace")):
        yield process["ProcessId"], process["CommandLine"] or ""


# How this machine's processes are found.
processes = by_proc if os.path.exists("/proc/self/cmdline") else by_powershell if os.name == "nt" else by_ps


def words(line):
    """The words of a command. A relative path is of the folder that this script was started in; the program starts in another."""
    # Backslashes are in paths on Windows.
    split = [word.strip('"') for word in shlex.split(line, posix=False)] if os.name == "nt" else shlex.split(line)
    made = []
    for word in split:
        if "/" in word or os.sep in word:
            found = [path for path in (word, word + ".exe") if os.path.isfile(path)]
            word = os.path.abspath(found[0]) if found else word
        made.append(word)
    return made


class Model:
    """An endpoint that is compatible with OpenAI's. It plays the calls that it was given, one a turn, and then says `done`."""

    def __init__(self):
        self.calls, self.results = [], []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.send_response(404)
                self.send_header("content-length", "0")
                self.end_headers()

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                last = body["messages"][-1]
                if last["role"] == "tool":
                    content = last["content"]
                    model.results.append(content if isinstance(content, str) else json.dumps(content))
                if model.calls:
                    name, given = model.calls.pop(0)
                    call = {"index": 0, "id": f"call_{time.monotonic_ns()}", "type": "function",
                            "function": {"name": name, "arguments": json.dumps(given)}}
                    said = [({"role": "assistant", "tool_calls": [call]}, None), ({}, "tool_calls")]
                else:
                    said = [({"role": "assistant", "content": "done"}, None), ({}, "stop")]
                text = "".join(
                    "data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", "model": "story", "choices": [
                        {"index": 0, "delta": delta, "finish_reason": finish}]}) + "\n\n" for delta, finish in said)
                text = (text + "data: [DONE]\n\n").encode()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"


class Socket:
    """A WebSocket, as far as a client needs one."""

    def __init__(self, port, token, query=""):
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.file = self.connection.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.connection.sendall((
            f"GET /ws{query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nAuthorization: Bearer {token}\r\n\r\n").encode())
        status = self.file.readline().decode()
        expect(" 101 " in status, f"the WebSocket was answered with {status.strip()!r}")
        while self.file.readline() not in (b"\r\n", b""):
            pass
        self.seen = []

    def _send(self, opcode, data):
        head = bytes([0x80 | opcode])
        if len(data) < 126:
            head += bytes([0x80 | len(data)])
        elif len(data) < 1 << 16:
            head += bytes([0xFE]) + len(data).to_bytes(2, "big")
        else:
            head += bytes([0xFF]) + len(data).to_bytes(8, "big")
        # A mask of zeros is a mask: nobody stands between us and the daemon.
        self.connection.sendall(head + bytes(4) + data)

    def send(self, type_, **payload):
        self._send(1, json.dumps({"type": type_, "payload": payload}).encode())

    def _exactly(self, count):
        data = self.file.read(count)
        expect(len(data) == count, f"the socket was closed; the last frames were {self.seen[-3:]}")
        return data

    def frame(self):
        """Returns the next frame of the contract."""
        deadline = time.monotonic() + PATIENCE
        while True:
            # Pings do not count as an answer.
            if time.monotonic() > deadline:
                raise Failed(f"no frame within {PATIENCE:.0f} s; the last ones were {json.dumps(self.seen[-3:])}")
            first, length = self._exactly(2)
            if length > 125:
                length = int.from_bytes(self._exactly(2 if length == 126 else 8), "big")
            data = self._exactly(length)
            if first & 15 == 9:
                self._send(10, data)
            elif first & 15 == 8:
                raise Failed(f"the daemon closed the socket: {data[2:].decode(errors='replace')}")
            elif first & 15 == 1:
                frame = json.loads(data)
                self.seen.append(frame)
                return frame

    def await_(self, type_, wanted=lambda payload: True):
        """Reads until a frame of this type, and returns its payload."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                frame = self.frame()
            except TimeoutError:
                break
            if frame["type"] in ("session:error", "chat:error") and type_ != frame["type"]:
                raise Failed(f"waiting for {type_}: {json.dumps(frame)}")
            if frame["type"] == type_ and wanted(frame["payload"]):
                return frame["payload"]
        raise Failed(f"no {type_} within {PATIENCE:.0f} s; the last frames were {json.dumps(self.seen[-3:])}")


class Story:
    """The program, and what is said to it."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.command = words(arguments.run)
        # By its real name: macOS' folder is behind a link, and Windows' may be given in the short form.
        self.place = os.path.realpath(arguments.place or tempfile.mkdtemp(prefix="story-"))
        self.project = os.path.join(self.place, "project")
        self.home = os.path.join(self.place, "home")
        os.makedirs(self.project)
        os.makedirs(self.home)
        # Seen in the command lines of what a command starts, by nobody else.
        self.mark = f"{600 + os.getpid() % 300}.{time.time_ns() % 10**9:09}"
        if arguments.windows:
            # Windows' ping takes whole numbers.
            self.mark = str(10**9 + time.time_ns() // 100 % 10**9)
        self.model = Model()
        self.daemon = self.socket = None
        self.log = open(os.path.join(self.place, "log"), "w+b")
        self.lines = queue.Queue()

    def environment(self):
        """Nothing of this shell's but what was asked for: a key in it would choose another provider."""
        own = {"PATH": os.environ["PATH"], "HOME": self.home, "OUTRIGGER_APPROVAL__TIMEOUT": "5m",
               "OUTRIGGER_PROVIDERS__STORY__KIND": "openai", "OUTRIGGER_PROVIDERS__STORY__BASE_URL": self.model.url,
               "OUTRIGGER_PROVIDERS__STORY__API_KEY": "none", "OUTRIGGER_PROVIDERS__STORY__MODEL": "story",
               "OUTRIGGER_CHAT__PROVIDER": "story"}
        if os.name == "nt":
            # Hardly a program starts there without SystemRoot, and PowerShell finds none without PATHEXT.
            for name in ("SystemRoot", "ComSpec", "PATHEXT", "TEMP", "TMP"):
                if name in os.environ:
                    own[name] = os.environ[name]
            own["USERPROFILE"] = self.home
        for name in self.arguments.pass_env:
            if name in os.environ:
                own[name] = os.environ[name]
        own.update(item.split("=", 1) for item in self.arguments.env)
        return own

    def named(self, path):
        """A path of this machine as the program names it. Wine has the whole file system as its drive Z:."""
        if self.arguments.wine:
            return "Z:" + path.replace("/", "\\")
        if self.arguments.root:
            return "/" + os.path.relpath(path, self.arguments.root)
        return path

    def start(self):
        config = os.path.join(self.place, "config.toml")
        # What runs until it is ended: another daemon, which takes nothing of this one's.
        other = os.path.join(self.place, "other.toml")
        with open(other, "w") as file:
            file.write("[store]\nenabled = false\n")
        with open(config, "w") as file:
            if self.arguments.tool:
                waits = ["--port", "0", "--project-root", ".", "--config", self.named(other), "--ready-file", "{mark}"]
                for name, args in (("say", ["--version"]), ("wait", waits)):
                    file.write(f'[tools.custom.{name}]\ndescription = "{name}"\ncommand = {json.dumps(self.arguments.tool)}\n'
                               f"args = {json.dumps(args)}\n")
                    if "{mark}" in args:
                        file.write(f"[tools.custom.{name}.input_schema.properties]\nmark = {{ type = \"string\" }}\n")
        own = ["--port", "0", "--project-root", self.named(self.project), "--config", self.named(config)]
        began = time.monotonic()
        self.daemon = subprocess.Popen([*self.command, *own], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                       env=self.environment(), cwd=self.place)

        # Of its own: what an earlier program of the same story said at its end is not this one's.
        lines, stdout = queue.Queue(), self.daemon.stdout
        self.lines = lines

        def read():
            for line in stdout:
                lines.put(line.decode(errors="replace"))
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        try:
            line = self.lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise Failed(f"no ready line within {PATIENCE:.0f} s") from None
        if line is None:
            raise Failed(f"the daemon ended before it was ready, with {self.daemon.wait(PATIENCE)}")
        try:
            ready = json.loads(line)
        except ValueError:
            raise Failed(f"the first line on stdout is no JSON: {line!r}") from None
        expect(ready.get("event") == "ready", f"not ready: {line}")
        return ready, (time.monotonic() - began) * 1000

    def say(self, *calls, answer=True):
        """Sends a message, has the model make these calls, answers each question, and returns the results."""
        self.begin(*calls)
        return self.finish(answer)

    def begin(self, *calls):
        self.model.calls, self.model.results = list(calls), []
        self.socket.send("chat:send", content="go on")

    def finish(self, answer=True):
        results, asked, deadline = [], 0, time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            frame = self.socket.frame()
            kind, payload = frame["type"], frame["payload"]
            if kind == "chat:tool-confirm":
                asked += 1
                self.answer(payload, answer)
            elif kind == "chat:tool-result":
                results.append(payload)
            elif kind == "chat:error" and payload["code"] == "sandbox_violation":
                # The call has its result, and the exchange its end with this reason.
                continue
            elif kind in ("chat:error", "session:error"):
                raise Failed(json.dumps(frame))
            elif kind == "chat:stream-end":
                return results, asked, payload
        raise Failed(f"the exchange did not end within {PATIENCE:.0f} s; last: {json.dumps(self.socket.seen[-2:])}")

    def answer(self, question, approved):
        given = {"toolId": question["toolId"], "approved": approved}
        if "host" in question:
            given["host"] = question["host"]
        self.socket.send("chat:tool-approve", **given)

    # The parts.

    def version(self):
        ran = subprocess.run([*self.command, "--version"], env=self.environment(), cwd=self.place, capture_output=True, timeout=PATIENCE,
                             check=False)
        text = ran.stdout.decode(errors="replace").strip()
        expect(ran.returncode == 0 and re.fullmatch(r"outrigger \d+\.\d+\.\d+\S*", text),
               f"--version ended with {ran.returncode}: {text!r} {ran.stderr.decode(errors='replace')[-500:]!r}")
        return text

    def ready(self):
        ready, took = self.start()
        self.socket = Socket(ready["port"], ready["token"])
        payload = self.socket.await_("session:ready")
        mode = payload["sandbox"]["mode"]
        wanted = self.arguments.mode
        expect(not wanted or mode in wanted.split(","), f"the sandbox's mode is {mode}, not {wanted}: {json.dumps(payload['sandbox'])}")
        expect("project" in payload, f"there is no project: {payload.get('projectError')}")
        return f"{took:.0f} ms to ready, sandbox {mode} ({', '.join(payload['sandbox']['commands']) or 'no layer'}), network {payload['sandbox']['network']}"

    def files(self):
        os.makedirs(os.path.join(self.project, "sub"))
        results, asked, end = self.say(
            ("file_write", {"path": "sub/note.md", "content": "one\ntwo\n"}),
            ("file_read", {"path": "sub/note.md"}),
            ("file_edit", {"path": "sub/note.md", "oldText": "two", "newText": "three"}),
            ("file_list", {}),
            ("file_search", {"pattern": "thr[e]+"}))
        expect([it["status"] for it in results] == ["success"] * 5, f"not five successes: {json.dumps(results)}")
        expect(asked == 2, f"{asked} questions were asked for a write and an edit")
        expect("two" in results[1]["result"], f"file_read: {results[1]}")
        expect("note.md" in results[3]["result"], f"file_list: {results[3]}")
        expect("three" in results[4]["result"], f"file_search: {results[4]}")
        expect(end["stopReason"] == "end_turn", f"the end: {end}")
        with open(os.path.join(self.project, "sub", "note.md"), encoding="utf-8") as file:
            text = file.read()
        expect(text == "one\nthree\n", f"the file holds {text!r}")
        return "written, read, changed, listed, searched; two questions"

    def outside(self):
        with open(os.path.join(self.place, "outside.txt"), "w") as file:
            file.write("not for the model")
        with open(os.path.join(self.project, ".env"), "w") as file:
            file.write("KEY=not for the model")
        paths = ["../outside.txt", self.named(os.path.join(self.place, "outside.txt")), ".env"]
        without = ""
        try:
            if self.arguments.wine:
                raise OSError("wine follows links of the Unix below it by itself")
            os.symlink(os.path.join(self.place, "outside.txt"), os.path.join(self.project, "link.txt"))
            paths.append("link.txt")
        except OSError as error:
            # On Windows it is a right that not everybody has.
            if not self.arguments.windows:
                raise
            without = f"; *** SKIPPED: a link: {error} ***"
        for path in paths + self.arguments.refused:
            results, _, _ = self.say(("file_read", {"path": path}), answer=False)
            expect(results and results[0]["status"] != "success", f"file_read of {path!r} was not refused: {results}")
            expect("not for the model" not in json.dumps(results), f"file_read of {path!r} gave it: {results}")
        return f"{len(paths) + len(self.arguments.refused)} paths refused{without}"

    def shell(self, what):
        """The call of what is run: of the shell, or of a tool of one's own."""
        if self.arguments.tool:
            return ("say", {}) if what == "say" else ("wait", {"mark": self.mark})
        return ("bash", {"command": self.arguments.say if what == "say" else self.arguments.wait.replace("{mark}", self.mark)})

    def refused(self):
        results, asked, _ = self.say(self.shell("say"), answer=False)
        expect(asked == 1, f"{asked} questions for a command")
        expect(results and results[0]["status"] != "success", f"a refused command ran: {results}")
        return "asked once, refused, not run"

    def command_(self):
        results, asked, end = self.say(self.shell("say"))
        expect(asked == 1, f"{asked} questions for a command")
        expect(results and results[0]["status"] == "success", f"the command failed: {json.dumps(results)}")
        expect(re.search(self.arguments.said, results[0]["result"]), f"it printed {results[0]['result']!r}, not {self.arguments.said!r}")
        expect(end["stopReason"] == "end_turn", f"the end: {end}")
        return f"asked once, approved, printed {results[0]['result'].strip()[:60]!r}"

    def running(self):
        """The processes that have the mark in their command line, by number; none of this script's own."""
        return [number for number, line in processes() if self.mark in line and number != os.getpid()]

    def begin_waiting(self):
        self.begin(self.shell("wait"))
        question = self.socket.await_("chat:tool-confirm")
        self.answer(question, True)
        self.socket.await_("chat:tool-start")
        least = 1 if self.arguments.tool else 2
        return until(lambda: (lambda found: found if len(found) >= least else None)(self.running()),
                     f"the command's processes ({least} with the mark {self.mark})")

    def cancel(self):
        count = len(self.begin_waiting())
        self.socket.send("chat:cancel")
        end = self.socket.await_("chat:stream-end")
        expect(end["stopReason"] == "cancelled", f"the end: {end}")
        until(lambda: not self.running(), "the end of all processes of a cancelled command")
        return f"{count} processes with the mark, none after it"

    def killed(self):
        """The daemon is killed hard, with a command that runs, and another one starts in its place."""
        count = 0 if "cancel" in self.arguments.skip else len(self.begin_waiting())
        self.socket.connection.close()
        self.daemon.kill()
        self.daemon.wait(PATIENCE)
        until(lambda: not self.running(), "the end of all processes of a command whose daemon was killed")
        ready, _ = self.start()
        self.socket = Socket(ready["port"], ready["token"])
        self.socket.await_("session:ready")
        return f"{count} processes of a command gone with the daemon that was killed, and the next one starts"

    def end(self):
        count = 0 if "cancel" in self.arguments.skip else len(self.begin_waiting())
        began = time.monotonic()
        self.daemon.stdin.close()
        try:
            code = self.daemon.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failed(f"the daemon runs on {PATIENCE:.0f} s after the end of its stdin") from None
        expect(code == 0, f"the daemon ended with {code}")
        until(lambda: not self.running(), "the end of all processes after the daemon's end")
        return f"exit code 0 after {(time.monotonic() - began) * 1000:.0f} ms, {count} processes of a command gone with it"

    def run(self):
        parts = [("version", self.version), ("ready", self.ready), ("files", self.files), ("outside", self.outside),
                 ("refused", self.refused), ("command", self.command_), ("cancel", self.cancel), ("killed", self.killed),
                 ("end", self.end)]
        skip = self.arguments.skip
        for name, part in parts:
            if name in skip:
                print(f"story: {name}: *** SKIPPED ***", flush=True)
                continue
            try:
                print(f"story: {name}: {part()}", flush=True)
            except (Failed, OSError, subprocess.SubprocessError) as error:
                raise Failed(f"{name}: {error}") from error

    def close(self):
        if self.daemon and self.daemon.poll() is None:
            self.daemon.kill()
            self.daemon.wait()
        try:
            left = self.running()
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            # What failed before is what is to be read.
            print(f"story: processes that are left cannot be found: {error}", file=sys.stderr)
            left = []
        for pid in left:
            try:
                # Windows has no such signal; any other is the same there.
                os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
            except OSError:
                pass
        self.model.server.shutdown()
        # Windows removes no file that is open.
        self.log.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--run", required=True, help="the program, with what runs it before it")
    parser.add_argument("--windows", action="store_true", help="the program is Windows'")
    parser.add_argument("--wine", action="store_true", help="paths are told to it as on wine's drive Z:")
    parser.add_argument("--root", help="it sees this folder as its root: paths are told to it from there")
    parser.add_argument("--place", help="an empty or absent folder for project, home and log; default: a temporary one")
    parser.add_argument("--pass-env", action="append", default=[], help="a variable of this environment that it gets")
    parser.add_argument("--env", action="append", default=[], help="NAME=VALUE that it gets")
    parser.add_argument("--mode", help="modes of the sandbox that may be there, with commas")
    parser.add_argument("--tool", help="this program instead of a shell; as the daemon names it")
    parser.add_argument("--say", default="echo said by a command", help="the command that prints something")
    parser.add_argument("--said", help="what it prints, as a regular expression")
    parser.add_argument("--wait", help="the command that is cancelled; {mark} is in the command lines of at least two processes")
    parser.add_argument("--refused", action="append", default=[], help="a further path that file_read must refuse")
    parser.add_argument("--skip", default="", type=lambda text: text.split(","), help="parts, with commas")
    arguments = parser.parse_args()
    arguments.said = arguments.said or ("outrigger " if arguments.tool else "said by a command")
    # Of Windows' shells each knows ping, and has the mark in its own command line; `timeout` wants a console.
    arguments.wait = arguments.wait or ("ping -n 600 -w {mark} 127.0.0.1" if arguments.windows else "sleep {mark} & sleep {mark}")
    # Windows' own encoding has not every letter.
    sys.stdout.reconfigure(errors="replace")
    sys.stderr.reconfigure(errors="replace")
    if arguments.place:
        shutil.rmtree(arguments.place, ignore_errors=True)
    story = Story(arguments)
    try:
        story.run()
    except Failed as failure:
        story.log.flush()
        with open(story.log.name, encoding="utf-8", errors="replace") as log:
            print(f"--- the log's end ---\n{log.read()[-4000:]}\n---", file=sys.stderr)
        print(f"story: FAILED: {failure}", file=sys.stderr)
        sys.exit(1)
    finally:
        story.close()
        if not arguments.place:
            shutil.rmtree(story.place, ignore_errors=True)


if __name__ == "__main__":
    main()
