#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The contract against a real kube-apiserver and etcd: run-real.py [--plain] [--filter GLOB] [-v]

Runs ${VESPER_BUILD:-build}/tests/contract/contract, and the one of ${VESPER_BUILD}-san if it is there, each
with a control plane of its own, both at once. Prints each case and, as the last line, "N passed, N failed,
N skipped".

The program talks to the API server through proxies here that can break every connection (POST /cut, /hold),
and may have the past forgotten (POST /compact), which no client could ask an API server for.
"""

import argparse
import contextlib
import http.server
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = os.path.dirname(TESTS)
sys.path.insert(0, os.path.join(TESTS, "cluster"))

import procs  # noqa: E402
from cluster import Cluster  # noqa: E402

MANIFESTS = os.path.join(TOP, "packaging", "manifests")
NODE, OTHER_NODE = "contract-node", "contract-other"
FEATURES = "ImageVolume=true"  # not on by default yet, and vesper reads its field
SERVED = ["/api/v1/nodes", "/api/v1/pods", "/api/v1/events", "/api/v1/namespaces",
          "/apis/coordination.k8s.io/v1/leases", "/apis/policy/v1/poddisruptionbudgets",
          "/apis/storage.k8s.io/v1/volumeattachments",
          "/api/v1/persistentvolumes", "/api/v1/persistentvolumeclaims", "/apis/storage.k8s.io/v1/storageclasses",
          "/apis/storage.k8s.io/v1/csinodes",
          *(f"/apis/vesper.sh/v1alpha1/{k}" for k in ("nodepools", "nodeclaims", "nodedisruptionbudgets"))]
TIMEOUT = 1800  # only ends what hangs
# How cmocka tells of a case.
RESULT = re.compile(r"^\[ *(OK|FAILED|SKIPPED) *\] (\S+)$")
BEGIN = re.compile(r"^\[ RUN +\] (\S+)$")


class Pair:
    """A client's connection and the one to the server that carries its bytes on."""

    LIMIT = 60

    def __init__(self, client, server):
        self._sockets = (client, server)
        self._over = threading.Event()
        for s in self._sockets:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def run(self):
        """Until either end is over. Only then, with nobody in a call on it, does close() reset a socket at once:
        one in which a thread still waits lives on until that thread has woken, however long that takes."""
        client, server = self._sockets
        back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
        back.start()
        self._pump(client, server)
        back.join()
        for s in self._sockets:
            s.close()
        self._over.set()

    def end(self):
        """Both ways stop, and both ends get a reset; wait() says when."""
        for s in self._sockets:
            with contextlib.suppress(OSError):
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.shutdown(socket.SHUT_RD)  # wakes its pump

    def wait(self):
        if not self._over.wait(self.LIMIT):
            raise TimeoutError(f"a connection of the proxy did not end within {self.LIMIT} s")

    def _pump(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        self.end()


class Proxy:
    """Bytes back and forth between clients and a port of 127.0.0.1."""

    def __init__(self, port):
        self._to = ("127.0.0.1", port)
        self._lock = threading.Lock()
        self._open = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self._held = False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()
        self.cut()

    def cut(self):
        """Every connection ends with a reset, which has been sent when this returns."""
        with self._lock:
            pairs = list(self._open)
        for pair in pairs:
            pair.end()
        for pair in pairs:
            pair.wait()

    def hold(self):
        """As cut(), and who comes is sent away, who is on the way included."""
        with self._lock:
            self._held = True
        self.cut()

    def release(self):
        self._held = False

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._held:
                client.close()
            else:
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            server = socket.create_connection(self._to)
        except OSError:
            client.close()
            return
        pair = Pair(client, server)
        with self._lock:
            self._open.add(pair)
            held = self._held
        if held:
            pair.end()
        pair.run()
        with self._lock:
            self._open.remove(pair)


class Control(http.server.ThreadingHTTPServer):
    """What the program may ask for, on a port of 127.0.0.1."""

    daemon_threads = True

    def __init__(self, verbs):
        self.verbs = verbs
        super().__init__(("127.0.0.1", 0), _Asked)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Asked(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        verb = self.server.verbs.get(self.path.strip("/"))
        try:
            status, text = (200, f"{verb()}") if verb else (404, "no such verb")
        except Exception as e:  # whatever it is: the program shall hear of it
            status, text = 500, repr(e)
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def prepare(cluster):
    """What vesper's own installation puts there; the kubeconfig options of the program."""
    cluster.apply(os.path.join(MANIFESTS, "crds"))
    cluster.apply(os.path.join(MANIFESTS, "coordinator", "rbac.yaml"))
    wait_served(cluster)
    return {
        "--kubeconfig": cluster.kubeconfig(),
        "--node-kubeconfig": cluster.kubeconfig(f"system:node:{NODE}"),
        "--other-node-kubeconfig": cluster.kubeconfig(f"system:node:{OTHER_NODE}"),
        "--coordinator-kubeconfig": cluster.service_account("vesper-coordinator", "vesper-system"),
        "--stranger-kubeconfig": cluster.kubeconfig("stranger"),
        "--nobody-kubeconfig": kubeconfig_of_nobody(cluster),
    }


def kubeconfig_of_nobody(cluster):
    """A stranger's, with a token that nobody has given out in place of the certificate."""
    with open(cluster.kubeconfig("stranger"), encoding="utf-8") as f:
        text = re.sub(r"(?m)^( *)client-certificate-data:.*\n.*$", r"\1token: not-a-token", f.read())
    path = os.path.join(cluster.directory, "kubeconfigs", "nobody.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def wait_served(cluster):
    """A new kind is 404, then 429 (its cache fills), then served; so is every kind after a start."""
    admin = cluster.client()
    for path in SERVED:
        cluster.wait_for(lambda p=path: admin.request("GET", p)[0] == 200, what=path)


def compact(cluster, *proxies):
    """The connections to the API server that was there before are over, too, when this returns."""
    cluster.compact()
    for proxy in proxies:
        proxy.cut()
    wait_served(cluster)


class Count:
    def __init__(self):
        self.results = {"OK": 0, "FAILED": 0, "SKIPPED": 0}
        self._lock = threading.Lock()

    def add(self, label, name, result, said, seconds=0.0):
        """said: lines to show with it."""
        words = {"OK": "ok      ", "FAILED": "FAILED  ", "SKIPPED": "skipped "}
        with self._lock:
            self.results[result] += 1
            print("".join(f"        {s}\n" for s in said) +
                  f"{words[result]}{label}: {name} ({seconds:.2f} s)", flush=True)


def follow(process, label, count, verbose):
    """Counts each case as it ends; what a failed or skipped one said is shown, and what any excepts."""
    running, said, began, failed = None, [], 0.0, False
    for line in process.stdout:
        line = line.rstrip("\n")
        if match := BEGIN.match(line):
            running, said, began = match[1], [], time.monotonic()
        elif running and (match := RESULT.match(line)) and match[2] == running:
            everything = verbose or match[1] != "OK"
            count.add(label, running, match[1],
                      [s for s in said if everything or s.startswith("excepted: ")],
                      time.monotonic() - began)
            failed |= match[1] == "FAILED"
            running = None
        else:
            said.append(line)
    status = process.wait()
    if running or status < 0 or (status and not failed):
        count.add(label, running or f"(exit status {status})", "FAILED", said[-60:])


@contextlib.contextmanager
def started(program, options):
    """The program, running against a control plane of its own."""
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(controllers=False, scheduler=False,
                                              apiserver_args=[f"--feature-gates={FEATURES}"]))
        arguments = prepare(cluster)
        proxy = stack.enter_context(contextlib.closing(Proxy(cluster.ports["apiserver"])))
        held = stack.enter_context(contextlib.closing(Proxy(cluster.ports["apiserver"])))
        control = Control({"compact": lambda: compact(cluster, proxy, held), "cut": proxy.cut,
                           "hold": held.hold, "release": held.release})
        stack.callback(control.server_close)
        stack.callback(control.shutdown)

        argv = [program, "--server", proxy.url, "--held-server", held.url, "--control", control.url]
        for option, path in arguments.items():
            argv += [option, path]
        if options.filter:
            argv += ["--filter", options.filter]
        process = procs.spawn(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace")
        stack.callback(process.wait)
        stack.callback(process.kill)
        timer = threading.Timer(TIMEOUT, process.kill)
        timer.start()
        stack.callback(timer.cancel)
        yield process


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter",
                        help="only the cases whose name matches; some need the first of their file")
    parser.add_argument("--plain", action="store_true", help="not the sanitized program")
    parser.add_argument("-v", "--verbose", action="store_true", help="all that the program prints")
    options = parser.parse_args()
    procs.exit_on_signals()

    build = os.environ.get("VESPER_BUILD") or os.path.join(TOP, "build")
    count = Count()
    # Both at once, since most of it is waiting.
    with contextlib.ExitStack() as stack:
        followers = []
        for directory, label in ((build, "contract, real"), (f"{build}-san", "contract, real, sanitized")):
            if options.plain and directory != build:
                continue
            program = os.path.join(directory, "tests", "contract", "contract")
            if os.access(program, os.X_OK):
                process = stack.enter_context(started(program, options))
                arguments = (process, label, count, options.verbose)
                followers.append(threading.Thread(target=follow, args=arguments))
                followers[-1].start()
            elif directory == build:
                count.add("contract, real", "(the program)", "FAILED", [f"{program} is not built"])
        for follower in followers:
            follower.join()
    print("{OK} passed, {FAILED} failed, {SKIPPED} skipped".format(**count.results))
    return 1 if count.results["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
