# SPDX-License-Identifier: Apache-2.0
"""Child processes and ports of the test cluster.

Nothing that is started here may outlive the tests, however they end: a normal end and an exception stop
every child by its pid; SIGTERM and SIGHUP become SystemExit, so that `with` blocks run; and when this
process is killed outright, the kernel kills the children (PR_SET_PDEATHSIG). That last one is tied to the
*thread* which forked, hence all forks are done by one thread that lives as long as the process.
"""

import atexit
import concurrent.futures
import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import threading
import time

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_forker = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="forker")


class StartError(Exception):
    """A process ended, or did not become ready; the message holds the end of its log."""


def spawn(argv, *, dies_by=signal.SIGKILL, **popen_args):
    """subprocess.Popen() whose child gets the signal dies_by when this process ends in whatever way."""
    parent = os.getpid()

    def in_child():
        _libc.prctl(_PR_SET_PDEATHSIG, int(dies_by), 0, 0, 0)
        if os.getppid() != parent:  # it ended before the call above
            os._exit(127)

    return _forker.submit(subprocess.Popen, argv, preexec_fn=in_child, **popen_args).result()


class Process:
    """A server of the cluster: started, stopped, paused and started again with the same arguments."""

    def __init__(self, name, argv, log_path, env):
        self.name = name
        self.argv = [str(a) for a in argv]
        self.log_path = log_path
        self.env = env
        self.popen = None

    @property
    def pid(self):
        return self.popen.pid if self.popen else None

    def start(self):
        if self.alive():
            raise RuntimeError(f"{self.name} is running")
        with open(self.log_path, "ab") as log:
            # A session of its own: the terminal's Ctrl-C is for us, who then stop it in order.
            self.popen = spawn(self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env,
                               cwd=os.path.dirname(self.log_path), start_new_session=True)
        return self

    def alive(self):
        return self.popen is not None and self.popen.poll() is None

    def signal(self, number):
        """Does nothing when it has ended. Its pid cannot be another's: it is ours to reap."""
        if self.alive():
            self.popen.send_signal(number)

    def pause(self):
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        """At once and without its farewells: an API server would wait for its watches to end."""
        self.signal(signal.SIGKILL)

    def wait(self):
        if self.popen:
            self.popen.wait()

    def stop(self):
        self.kill()
        self.wait()

    def terminate(self, timeout=10):
        """The orderly way, for tests that want to see it; SIGKILL after the timeout."""
        self.signal(signal.SIGTERM)
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.stop()
            return self.popen.returncode

    def log_tail(self, lines=25):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as f:
                return "".join(f.readlines()[-lines:])
        except OSError as e:
            return f"({e})\n"

    def wait_ready(self, ready, timeout=300):
        """Until ready() is true. An exception of the kind OSError counts as "not yet"."""
        deadline = time.monotonic() + timeout
        why = "not ready"
        while True:
            if not self.alive():
                why = f"ended with status {self.popen.returncode if self.popen else None}"
                break
            try:
                if ready():
                    return
                why = "not ready"
            except OSError as e:
                why = str(e)
            if time.monotonic() > deadline:
                why = f"not ready after {timeout} s: {why}"
                break
            time.sleep(0.02)
        raise StartError(f"{self.name}: {why}\n--- end of {self.log_path}:\n{self.log_tail()}")


class Ports:
    """Free TCP ports on 127.0.0.1, never the same one for two clusters.

    They lie outside of the range from which the kernel takes ports for outgoing connections. Each is
    reserved by an abstract Unix socket of that number, which disappears with its owner, until release().
    """

    _LOW, _HIGH = 10240, 65535

    def __init__(self):
        self._holders = []
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
            low, high = map(int, f.read().split())
        self._candidates = [p for p in range(self._LOW, self._HIGH) if not low <= p <= high]
        if len(self._candidates) < 1000:
            self._candidates = list(range(self._LOW, self._HIGH))

    def take(self):
        for port in random.sample(self._candidates, 200):
            holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                holder.bind(f"\0vesper-test-port-{port}")
                with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("127.0.0.1", port))
            except OSError:
                holder.close()
                continue
            self._holders.append(holder)
            return port
        raise StartError("found no free port on 127.0.0.1")

    def release(self):
        while self._holders:
            self._holders.pop().close()


def exit_on_signals():
    """Makes SIGTERM and SIGHUP end this process through its `with` and `finally` blocks, unless the program
    has its own way with them. SIGINT does so already in Python."""
    if threading.current_thread() is not threading.main_thread():
        return

    def handler(number, frame):
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, handler)


@contextlib.contextmanager
def signals_blocked():
    """For a clean-up that a second Ctrl-C must not cut short."""
    numbers = {signal.SIGTERM, signal.SIGHUP, signal.SIGINT}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def at_exit(function):
    """function() when the interpreter ends, if nobody did before. Returns what takes it back."""
    atexit.register(function)
    return lambda: atexit.unregister(function)
