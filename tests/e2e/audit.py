# SPDX-License-Identifier: Apache-2.0
"""The API server's own record of who asked what, when: exact counts and times of calls."""

import json
import os
import shutil
import uuid

from daemons import LIMIT, seconds

# What was asked is kept where the cases look into it; of the rest, who and when.
POLICY = {
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
    "rules": [{"level": "None", "users": ["system:apiserver", "system:kube-scheduler"]},
              {"level": "None", "verbs": ["get", "list", "watch"], "userGroups": ["system:masters"]}, {
                  "level": "Request", "verbs": ["patch", "update"],
                  "resources": [{"group": "", "resources": ["nodes", "nodes/status"]},
                                {"group": "policy", "resources": ["poddisruptionbudgets/status"]}]
              }, {
                  "level": "Request", "verbs": ["delete"], "resources": [{"group": "", "resources": ["pods"]}]
              }, {"level": "Metadata"}]
}
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
WRITES = ("create", "update", "patch", "delete", "deletecollection")


class Call:
    """One request, answered."""
    def __init__(self, event):
        self.event = event
        self.user = event["user"]["username"]
        self.verb = event["verb"]
        self.path = event["requestURI"].partition("?")[0]
        reference = event.get("objectRef", {})
        self.resource = "/".join(filter(None, (reference.get("resource"), reference.get("subresource"))))
        self.name = reference.get("name", "")
        self.status = event.get("responseStatus", {}).get("code", 0)
        self.received = seconds(event["requestReceivedTimestamp"])
        self.answered = seconds(event["stageTimestamp"])

    @property
    def body(self):
        return self.event.get("requestObject") or {}

    @property
    def is_write(self):
        return self.verb in WRITES

    @property
    def is_eviction(self):
        return self.resource == "pods/eviction"

    def __repr__(self):
        return f"{self.verb} {self.resource} {self.name} {self.status}"


class AuditLog:
    """Grows with the API server's; mark() and since() cut out what belongs to one case."""
    def __init__(self, directory):
        self.path = os.path.join(directory, "audit.log")
        self.policy = os.path.join(directory, "audit.yaml")
        with open(self.policy, "w", encoding="utf-8") as f:
            json.dump(POLICY, f)

    def arguments(self):
        return [
            f"--audit-policy-file={self.policy}", f"--audit-log-path={self.path}",
            "--audit-log-mode=blocking-strict",
            "--audit-log-maxsize=10000"  # MB: never begun anew in the middle of a case
        ]

    def mark(self):
        return os.path.getsize(self.path)

    def calls(self, cluster, admin, mark, user=None):
        """Returns the answered calls since the mark. First makes a request as admin, and waits until the log has that request: calls
        that were answered before it are in the log by then."""
        marker = f"marker-{uuid.uuid4().hex}"
        admin.create(f"{REVIEWS}?fieldManager={marker}", {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
        cluster.wait_for(lambda: self._has(mark, marker), LIMIT, "the audit log has the last request")
        return self.since(mark, user)

    def _has(self, mark, text):
        with open(self.path, "rb") as f:
            f.seek(mark)
            return text.encode() in f.read().rpartition(b"\n")[0]

    def copy(self, mark, target):
        """Copies what was written since the mark to the file target."""
        with open(self.path, "rb") as f, open(target, "wb") as copy:
            f.seek(mark)
            shutil.copyfileobj(f, copy)

    def since(self, mark, user=None):
        """Answered calls, in the order of their arrival."""
        with open(self.path, "rb") as f:
            f.seek(max(mark - 1, 0))
            data = f.read()
        if mark:
            data = data[data.find(b"\n") + 1:]  # the mark may be in a line that was being written
        events = [json.loads(raw) for raw in data[:data.rfind(b"\n") + 1].splitlines()]
        calls = [Call(e) for e in events if e["stage"] in ("ResponseComplete", "Panic")]
        return sorted((c for c in calls if user is None or c.user == user), key=lambda c: c.received)
