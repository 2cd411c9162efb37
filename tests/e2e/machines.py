# SPDX-License-Identifier: Apache-2.0
"""A cloud of files for provider "exec": its command launches, finds and ends machines, and logs each request."""

import contextlib
import json
import os
import stat

# Each opId names one machine. The file "slow" keeps an answer back: the machine is there, and nobody learns it.
_COMMAND = """#!/usr/bin/python3 -ES
# Test provider with launch and find: machines are files beside it.
import json, os, sys, time
place, op, request = __file__ + ".", sys.argv[1], json.load(sys.stdin)
log = os.open(place + "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(log, (json.dumps({**request, "op": op, "time": time.time()}) + "\\n").encode())
name = request.get("providerID", "metal://launched/" + request.get("opId", ""))
launched, ended = (place + kind + name.replace("/", "_") for kind in ("launched-", "ended-"))
if op == "launch" and os.path.exists(place + "answer"):
    print(open(place + "answer").read())
elif op == "launch":
    open(launched, "a").close()
    while os.path.exists(place + "slow"):
        time.sleep(0.01)
    print(json.dumps({"launch": "accepted", "providerID": name}))
elif op == "find":
    print(json.dumps({"providerID": name if os.path.exists(launched) else None}))
elif op in ("describe", "terminate"):
    if op == "terminate":
        open(ended, "w").close()
    print(json.dumps({"state": "gone" if os.path.exists(ended) else "present"}))
else:
    sys.exit(64)
"""


class Machines:
    """command: the path for [Provider] Command=."""
    def __init__(self, directory, name="machines"):
        self.command = os.path.join(directory, name)
        with open(self.command, "w", encoding="utf-8") as f:
            f.write(_COMMAND)
        os.chmod(self.command, stat.S_IRWXU)

    def calls(self, operation, **fields):
        """The requests for this operation whose fields have these values, each with its time, in order."""
        with contextlib.suppress(FileNotFoundError), open(f"{self.command}.calls", encoding="utf-8") as f:
            found = [json.loads(line) for line in f.read().split("\n")[:-1]]
            return [c for c in found if c["op"] == operation and all(c.get(k) == v for k, v in fields.items())]
        return []

    def launched(self):
        """How many machines were launched since the start."""
        here, prefix = os.path.split(f"{self.command}.launched-")
        return sum(name.startswith(prefix) for name in os.listdir(here))

    @staticmethod
    def launched_id(request):
        """The providerID of the machine of that launch."""
        return f"metal://launched/{request['opId']}"

    @contextlib.contextmanager
    def answer(self, launch, message):
        """Meanwhile each launch is answered like this."""
        path = f"{self.command}.answer"
        with open(f"{path}.new", "w", encoding="utf-8") as f:
            json.dump({"launch": launch, "error": {"code": launch, "message": message}}, f)
        os.rename(f"{path}.new", path)
        try:
            yield
        finally:
            os.unlink(path)

    @contextlib.contextmanager
    def slow(self):
        """Meanwhile a launch has its machine, and its answer does not come."""
        path = f"{self.command}.slow"
        with open(path, "w", encoding="utf-8"):
            pass
        try:
            yield
        finally:
            os.unlink(path)
