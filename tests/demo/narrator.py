# SPDX-License-Identifier: Apache-2.0
"""Tells what happens, as it happens: watches the cluster's API and reads the daemons' logs.

Each thing that is seen becomes a line with the time since the story began. Lines are held back for a moment,
so that what came by different ways stands in the right order, and pods to which the same happens share one
line."""

import os
import sys
import textwrap
import threading
import time

HOLD_BACK_SEC = 0.15
WIDTH = 108
_INDENT = 28

_COLOURS = {"story": "1", "you": "1;33", "EC2": "1;35", "command": "1;35", "cluster": "36", "agent": "32", "coordinator": "34"}


class Screen:
    def __init__(self):
        self._colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self.begin = time.time()

    def paint(self, text, kind):
        code = _COLOURS.get(kind.split()[0])
        return f"\033[{code}m{text}\033[0m" if self._colour and code else text

    def heading(self, text):
        print(f"\n{self.paint(text, 'story')}\n", flush=True)

    def plain(self, text=""):
        print(text, flush=True)

    def line(self, when, who, text):
        """"  12.345  agent node-2       text", wrapped under itself; rows of a table (several lines) as they are."""
        lines, indent = text.split("\n"), 4 if "\n" in text else _INDENT
        parts = [
            part for line in lines
            for part in ([line] if len(line) <= WIDTH - indent or (len(lines) > 1 and "   " in line) else
                         _wrapped(line, WIDTH - indent))
        ]
        print(f"{when - self.begin:8.3f}  {self.paint(f'{who:<16}', who)}  {parts[0]}", flush=True)
        for more in parts[1:]:
            print((" " * indent + more).rstrip(), flush=True)


def _wrapped(text, width):
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


class Narrator:
    """say() from any thread; a thread of its own prints."""
    def __init__(self, screen):
        self.screen = screen
        self._told = []  # (time, who, text)
        self._groups = {}  # (verb, node) -> [first time, names]
        self._rooms = {}  # budget -> [first time, room now]
        self._room_told = {}
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join(5)
        self._print(time.time() + 1)

    def say(self, who, text, when=None):
        with self._lock:
            self._told.append((when or time.time(), who, text))

    def pods(self, verb, node, name):
        """Pods to which the same happens at about the same time are told together."""
        now = time.time()
        with self._lock:
            first, names = self._groups.setdefault((verb, node), [now, []])
            names.append(name)

    def room(self, budget, was, now):
        """What a budget allows changes with every eviction: only what lasts is told."""
        with self._lock:
            self._room_told.setdefault(budget, was)
            self._rooms.setdefault(budget, [time.time(), now])[1] = now

    def flush(self):
        """Until all that was said so far is printed."""
        time.sleep(HOLD_BACK_SEC * 2.5)

    def _run(self):
        while not self._end.wait(0.03):
            self._print(time.time() - HOLD_BACK_SEC)

    def _print(self, until):
        with self._lock:
            for (verb, node), (first, names) in list(self._groups.items()):
                if first <= until:
                    del self._groups[verb, node]
                    self._told.append((first, "cluster", _pods_line(verb, node, names)))
            for budget, (first, room) in list(self._rooms.items()):
                if first <= until:
                    del self._rooms[budget]
                    if room != self._room_told[budget]:
                        self._room_told[budget] = room
                        self._told.append((first, "cluster", _room_line(budget, room)))
            ready = sorted(t for t in self._told if t[0] <= until)
            self._told = [t for t in self._told if t[0] > until]
        for when, who, text in ready:
            self.screen.line(when, who, text)


def _pods_line(verb, node, names):
    many = f"{len(names)} pods" if len(names) > 1 else "pod"
    return verb.format(node=node, pods=f"{many} {' '.join(sorted(names))}")


def _room_line(budget, room):
    return f"budget {budget}: {room or 'none'} of its pods may be evicted now"


# -- the cluster's side -------------------------------------------------------------------------------------


class Watch(threading.Thread):
    """One resource: on_change(old, new) for each change, either may be None. Stops when the API ends it."""
    def __init__(self, client, path, on_change):
        super().__init__(daemon=True)
        self._client = client
        self._path = path
        self._on_change = on_change
        self._end = threading.Event()
        listed = client.get(path)
        self.objects = {_key(o): o for o in listed["items"]}
        self._version = listed["metadata"]["resourceVersion"]

    def stop(self):
        self._end.set()

    def run(self):
        while not self._end.is_set():
            try:
                for event in self._client.watch(self._path, self._version, 3600):
                    if self._end.is_set() or not self._take(event):
                        return
            except OSError:
                if not self._end.wait(0.1):
                    continue

    def _take(self, event):
        if event["type"] == "ERROR":
            return False
        new = event["object"]
        self._version = new["metadata"]["resourceVersion"]
        if event["type"] != "BOOKMARK":
            key = _key(new)
            old = self.objects.get(key)
            if event["type"] == "DELETED":
                self.objects.pop(key, None)
                self._on_change(old or new, None)
            else:
                self.objects[key] = new
                self._on_change(old, new)
        return True


def _key(o):
    return o["metadata"].get("namespace", ""), o["metadata"]["name"]


def is_ready(pod):
    return pod is not None and "deletionTimestamp" not in pod["metadata"] and any(
        c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", []))


class ClusterTeller:
    """What changed in the cluster, in words."""
    def __init__(self, narrator, client):
        self._narrator = narrator
        self.evicted = {}  # pod -> node, in the order in which they began to go
        self.gone = {}  # pod -> time
        self.held = {}  # pod -> (since, budget), as the NodeClaim's status names them
        vesper = "/apis/vesper.sh/v1alpha1"
        self.nodes = Watch(client, "/api/v1/nodes", self._node)
        self.pods = Watch(client, "/api/v1/namespaces/default/pods", self._pod)
        self.budgets = Watch(client, "/apis/policy/v1/namespaces/default/poddisruptionbudgets", self._budget)
        self.claims = Watch(client, f"{vesper}/nodeclaims", self._claim)
        self._watches = [self.nodes, self.pods, self.budgets, self.claims]

    def __enter__(self):
        for w in self._watches:
            w.start()
        return self

    def __exit__(self, *_):
        for w in self._watches:
            w.stop()

    def _say(self, text):
        self._narrator.say("cluster", text)

    def _node(self, old, new):
        if new is None:
            self._say(f"{old['metadata']['name']} is gone from the cluster")
            return
        name = new["metadata"]["name"]
        was, now = ({}, {}) if old is None else (old["spec"], new["spec"])
        if old is None:
            self._say(f"{name} has joined the cluster")
        if now.get("unschedulable") and not was.get("unschedulable"):
            self._say(f"{name} takes no new pods (cordoned)")
        if old and "deletionTimestamp" in new["metadata"] and "deletionTimestamp" not in old["metadata"]:
            self._say(
                f"{name} is marked as deleted; vesper's finalizer holds it until its machine has ended")

    def _pod(self, old, new):
        if new is None:
            name = old["metadata"]["name"]
            self.gone[name] = time.time()
            if name in self.evicted:
                self._narrator.pods("stopped and left {node}: {pods}", old["spec"].get("nodeName"), name)
            return
        name, node = new["metadata"]["name"], new["spec"].get("nodeName")
        if "deletionTimestamp" in new["metadata"] and old and "deletionTimestamp" not in old["metadata"]:
            self.evicted[name] = node
            self._narrator.pods("told to leave {node}: {pods}", node, name)
        elif is_ready(new) and not is_ready(old):
            self._narrator.pods("Ready on {node}: {pods}", node, name)

    def _budget(self, old, new):
        if old is None or new is None:
            return
        was, now = (o.get("status", {}).get("disruptionsAllowed") for o in (old, new))
        if was != now and now is not None:
            self._narrator.room(new["metadata"]["name"], was, now)

    def _claim(self, old, new):
        if new is None:
            self._say(f"the NodeClaim of {old.get('status', {}).get('nodeName', '?')} is gone")
            return
        node = new.get("status", {}).get("nodeName", "?")
        for blocker in new.get("status", {}).get("blockers", []):
            pod, budget = blocker["pod"].split("/")[-1], blocker.get("pdb", "").split("/")[-1]
            if budget and pod not in self.held:
                self.held[pod] = (time.time(), budget)
                self._narrator.pods(f"held on {{node}} by the budget {budget}: {{pods}}", node, pod)


# -- the daemons' side --------------------------------------------------------------------------------------

TOLD = {
    "NOTICE_SEEN", "NOTICE_CANCELLED", "NODE_CORDONED", "DRAIN_STARTED", "POD_EVICTION_BLOCKED",
    "POD_DELETED_AT_DEADLINE", "NODE_DRAINED", "DRAIN_FAILED", "API_UNREACHABLE", "API_BACK",
    "LEASE_ACQUIRED", "LEASE_LOST", "NODE_TERMINATION_STARTED", "INSTANCE_TERMINATED", "TERMINATION_BLOCKED",
    "FINALIZER_REMOVED", "SUCCESSOR_ASKED", "MACHINE_LAUNCHED", "SUCCESSOR_READY"
}


class LogTeller(threading.Thread):
    """Reads the daemons' logs as they grow, and tells what a person would want to hear."""
    def __init__(self, narrator, daemons):
        super().__init__(daemon=True)
        self._narrator = narrator
        self._daemons = daemons  # {who: Daemon}
        self._read = {who: 0 for who in daemons}
        self._sizes = {who: -1 for who in daemons}
        self._end = threading.Event()
        self.blocked = []  # lines POD_EVICTION_BLOCKED

    def __enter__(self):
        for who, daemon in self._daemons.items():
            self._read[who] = len(daemon.lines())
        self.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self.join(5)

    def run(self):
        while not self._end.wait(0.02):
            for who, daemon in self._daemons.items():
                self._read_on(who, daemon)

    def _read_on(self, who, daemon):
        size = os.path.getsize(daemon.log_path)
        if size == self._sizes[who]:
            return
        self._sizes[who] = size
        lines = daemon.lines()
        for line in lines[self._read[who]:]:
            if line.name == "POD_EVICTION_BLOCKED":
                self.blocked.append(line)
            if line.get("phase") == "Terminating":
                self._narrator.say(who, f"Node {line.get('node')}: {line.get('reason')}; its machine may be ended now", line.time)
            elif line.name in TOLD or line.get("level") in ("warning", "error"):
                self._narrator.say(who, line.text, line.time)
        self._read[who] = len(lines)
