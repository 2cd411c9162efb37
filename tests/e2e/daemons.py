# SPDX-License-Identifier: Apache-2.0
"""vesper's own programs as processes: started with a clean environment, their JSON log read as it grows."""

import contextlib
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "cluster"))

import procs  # noqa: E402

POLL = 0.005
# Seconds after which a wait for an event fails. This only ends what hangs: no case depends on how soon an event comes.
LIMIT = 300


@contextlib.contextmanager
def temporary_directory(name):
    """NAME-PID-something in the directory for such; what a killed process left there goes first."""
    for left in os.listdir(tempfile.gettempdir()):
        found = re.match(rf"{name}-(\d+)-", left)
        path = os.path.join(tempfile.gettempdir(), left)
        if found and not os.path.exists(f"/proc/{found[1]}") and os.lstat(path).st_uid == os.getuid():
            shutil.rmtree(path, ignore_errors=True)
    path = tempfile.mkdtemp(prefix=f"{name}-{os.getpid()}-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def build_directory():
    return os.path.abspath(os.environ.get("VESPER_BUILD") or os.path.join(TOP, "build"))


def program(name):
    """The path of vesper-agent, vesper-coordinator or vesperctl."""
    return os.path.join(build_directory(), "agent" if name == "vesper-agent" else "coordinator", name)


def _message_ids():
    with open(os.path.join(TOP, "shared", "log", "log-catalog.h"), encoding="utf-8") as f:
        return dict(re.findall(r'^#define MESSAGE_(\w+) "([0-9a-f]{32})"', f.read(), re.M))


MESSAGE = _message_ids()  # MESSAGE["NODE_CORDONED"]
_NAMES = {value: name for name, value in MESSAGE.items()}


def seconds(stamp):
    """An RFC 3339 time, with a fraction or not, as seconds since 1970."""
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


class Line(dict):
    """One line of a log. What does not parse is a message without more."""
    @property
    def name(self):
        """"NODE_CORDONED", or None for a line without an id."""
        return _NAMES.get(self.get("message_id"))

    @property
    def time(self):
        return seconds(self["time"]) if "time" in self else None

    @property
    def text(self):
        return self.get("msg", "")


class Daemon:
    """One process. Its log goes to DIRECTORY/NAME.log and is kept over restarts."""
    def __init__(self, name, binary, arguments, directory, environment=None):
        self.name = name
        self.argv = [program(binary), *arguments]
        self.log_path = os.path.join(directory, f"{name}.log")
        self.environment = {
            "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": directory, **(environment or {})
        }
        self.popen = None
        self.started = None
        self.patience = 1  # times what is given it to say or do something: a checker makes it slow
        self._begin = 0

    def __enter__(self):
        return self if self.alive() else self.start()

    def __exit__(self, *_):
        self.stop()

    def start(self):
        with open(self.log_path, "ab") as log:
            self._begin = log.tell()
            self.started = time.time()
            self.popen = procs.spawn(self.argv,
                                     stdin=subprocess.DEVNULL,
                                     stdout=log,
                                     stderr=log,
                                     env=self.environment,
                                     start_new_session=True)
        return self

    @property
    def pid(self):
        return self.popen.pid

    def alive(self):
        return self.popen is not None and self.popen.poll() is None

    def stop(self):
        """SIGTERM, and SIGKILL where that does not end it. Returns the exit status."""
        if self.popen is None:
            return None
        if self.alive():
            self.popen.terminate()
        try:
            return self.popen.wait(LIMIT * self.patience)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.popen.returncode

    def kill(self):
        if self.alive():
            self.popen.send_signal(signal.SIGKILL)
        if self.popen:
            self.popen.wait()

    def lines(self, since_start=True):
        """Those of this run, or of all."""
        with open(self.log_path, "rb") as f:
            f.seek(self._begin if since_start else 0)
            data = f.read()
        return [_parse(raw) for raw in data[:data.rfind(b"\n") + 1].splitlines()]

    def named(self, name, since_start=True, **fields):
        """The lines with that message id whose fields have these values."""
        return [
            line for line in self.lines(since_start)
            if line.name == name and all(line.get(key) == value for key, value in fields.items())
        ]

    def wait_line(self, name, timeout=LIMIT, **fields):
        """The first such line; waits for it."""
        timeout *= self.patience
        deadline = time.monotonic() + timeout
        while True:
            found = self.named(name, **fields)
            if found:
                return found[0]
            if not self.alive():
                raise AssertionError(f"{self.name} ended with status {self.popen.returncode}\n{self.tail()}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} did not log {name} {fields or ''} within {timeout} s\n"
                                   f"{self.tail()}")
            time.sleep(POLL)

    def tail(self, lines=25):
        """The end of its log, for people: time of day, level, message."""
        if not os.path.exists(self.log_path):
            return ""
        shown = [
            f"{line['time'][11:23]} {line.get('level', ''):7} {line.text}" if "time" in line else line.text
            for line in self.lines(False)[-lines:]
        ]
        return "\n".join([f"--- end of {self.name}'s log", *shown])

    def memory(self):
        """Rss, Pss and Anonymous, in kB."""
        with open(f"/proc/{self.pid}/smaps_rollup", encoding="ascii") as f:
            found = dict(re.findall(r"^(\w+): +(\d+) kB", f.read(), re.M))
        return {key: int(found[key]) for key in ("Rss", "Pss", "Anonymous")}


def _parse(raw):
    text = raw.decode(errors="replace")
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return Line(value) if isinstance(value, dict) else Line(msg=text)
