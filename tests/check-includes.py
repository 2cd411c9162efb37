#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The include rule of HACKING.md holds: a room includes only rooms below it, file names are unique in the tree, and no source
refers to a document that is not in it.

Exit status 0 when it holds; else one line per offence on standard error. `--self-test` shows that it can fail.
"""
import os
import re
import sys

SHARED = ["base", "loop", "log", "config", "json", "http-client", "cloud-http", "http-server", "metrics", "notice", "kube", "notify", "drain", "daemon"]
# Inside coordinator: cluster < simulate, budget, cloud < queue, termination, interruption, disruption, webhook < reboot, outlook, capacity < repair < ctl, main.
COORDINATOR = {"simulate": 0, "cluster": 0, "budget": 1, "cloud": 1, "queue": 2, "termination": 2, "interruption": 2, "disruption": 2,
               "webhook": 2, "reboot": 3, "outlook": 3, "capacity": 3, "repair": 4, "ctl": 5, ".": 5}
# Inside shared/kube.
KUBE = {"credentials": 0, "objects": 0, "client": 1, "watch": 2, "events": 2, "election": 2}
# Who may include a library's header: "only inside json/", "only in kube/" ...
ONLY = {
    "cjson/cJSON.h": {"shared/json"},
    "yaml.h": {"shared/kube/credentials"},
    "curl/curl.h": {"shared/http-client"},
    "microhttpd.h": {"shared/http-server"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)
DOCUMENT = re.compile(r"\b[\w-]+\.md\b")


def room(path):
    parts = path.split("/")
    if parts[0] == "shared":
        return ("shared", SHARED.index(parts[1]))
    if path in ("coordinator/coordinator-config.h", "coordinator/coordinator-metrics.h"):
        return ("coordinator", -1)  # plain settings and names: below every room, so that each can use its own
    if parts[0] == "coordinator":
        return ("coordinator", COORDINATOR[parts[1] if len(parts) > 2 else "."])
    return (parts[0], 0)


def offence(source, target):
    """Why `source` may not include `target` (both paths from the top), or None."""
    s, t = room(source), room(target)
    if s[0] == "tests":
        return None
    if t[0] == "tests":
        return "product code may not include tests"
    if source.startswith("shared/kube/") and target.startswith("shared/kube/"):
        same = os.path.dirname(source) == os.path.dirname(target)
        above = KUBE[source.split("/")[2]] > KUBE[target.split("/")[2]]
        return None if same or above else "inside kube: credentials, objects < client < watch, events, election"
    if s[0] == t[0] and s[0] == "shared":
        return None if t[1] <= s[1] else f"{SHARED[s[1]]} lies below {SHARED[t[1]]}"
    if s[0] == "shared":
        return f"shared/ may not include {t[0]}/"
    if t[0] == "shared":
        return None
    if s[0] != t[0]:
        return f"{s[0]}/ may not include {t[0]}/"
    if s[0] == "coordinator":
        same = os.path.dirname(source) == os.path.dirname(target)
        if not same and t[1] >= s[1] and s[1] < 4:
            return "inside coordinator: cluster < budget, cloud < termination, interruption, disruption, webhook < reboot < ctl, main"
    return None


def files(top):
    for base in ("shared", "agent", "coordinator", "tests"):
        for folder, _, names in os.walk(os.path.join(top, base)):
            for n in names:
                if n.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, n), top)


def check(top):
    found, where = [], {}
    every = sorted(files(top))
    for f in every:
        b = os.path.basename(f)
        if b in where:
            found.append(f"{f}: the name is taken by {where[b]}")
        where[b] = f
    for f in every:
        with open(os.path.join(top, f), encoding="utf-8") as h:
            text = h.read()
        for name in sorted(set(DOCUMENT.findall(text))):
            if not any(os.path.exists(os.path.join(top, d, name)) for d in ("", "tests", "tests/bench", "packaging")):
                found.append(f"{f} refers to {name}, which is not in the tree")
        for kind, name in INCLUDE.findall(text):
            allowed = ONLY.get(name)
            if allowed and os.path.dirname(f) not in allowed and not f.startswith("tests/"):
                found.append(f"{f}: {name} belongs only to {', '.join(sorted(allowed))}")
            if kind == '"':
                if name not in where:
                    found.append(f"{f}: no such header: {name}")
                elif (why := offence(f, where[name])) is not None:
                    found.append(f"{f} includes {where[name]}: {why}")
    return found, len(every)


def self_test():
    bad = [("shared/base/a.c", "shared/kube/watch/b.h"), ("shared/drain/a.c", "agent/b.h"), ("shared/kube/watch/a.c", "shared/daemon/b.h"), ("shared/daemon/a.c", "agent/b.h"), ("agent/a.c", "coordinator/b.h"),
           ("coordinator/cluster/a.c", "coordinator/cloud/b.h"), ("agent/a.c", "tests/fake/b.h"),
           ("coordinator/cloud/a.c", "coordinator/termination/b.h"),
           ("shared/kube/client/a.c", "shared/kube/watch/b.h"), ("shared/kube/events/a.c", "shared/kube/election/b.h")]
    good = [("shared/kube/watch/a.c", "shared/base/b.h"), ("shared/kube/watch/a.c", "shared/kube/client/b.h"), ("agent/a.c", "shared/drain/b.h"), ("tests/sim/a.c", "agent/b.h"),
            ("coordinator/termination/a.c", "coordinator/cluster/b.h"), ("coordinator/a.c", "coordinator/ctl/b.h")]
    for s, t in bad:
        assert offence(s, t), f"{s} -> {t} went unnoticed"
    for s, t in good:
        assert not offence(s, t), f"{s} -> {t}: {offence(s, t)}"


if __name__ == "__main__":
    self_test()
    offences, n = check(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for o in offences:
        print(o, file=sys.stderr)
    print(f"{n} files, {len(offences)} offences against the include rule")
    sys.exit(1 if offences else 0)
