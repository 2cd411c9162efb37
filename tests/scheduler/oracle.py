# SPDX-License-Identifier: Apache-2.0
"""schedcheck, kube-scheduler's own code, as a process that is asked: ../cluster/schedcheck/requests.go has the requests."""

import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = {"Node": "nodes", "Pod": "pods", "PersistentVolumeClaim": "pvcs", "PersistentVolume": "pvs", "Namespace": "namespaces",
         "Service": "services", "StorageClass": "storageclasses", "CSINode": "csinodes", "CSIDriver": "csidrivers",
         "CSIStorageCapacity": "csistoragecapacities", "VolumeAttachment": "volumeattachments"}


class OracleError(Exception):
    """schedcheck could make nothing of what it was asked."""


def built():
    """The path of schedcheck, which is built where it is not there yet."""
    return subprocess.run(["bash", os.path.join(HERE, "build.sh")], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()


def by_kind(objects):
    """As schedcheck reads them. What kube-scheduler does not look at (a NodePool, a PodDisruptionBudget) is left out."""
    sorted_out = {}
    for o in objects:
        if o["kind"] in KINDS:
            sorted_out.setdefault(KINDS[o["kind"]], []).append(o)
    return sorted_out


class Oracle:
    def __init__(self, path):
        # Its garbage is collected less often than Go would: clusters are small, and that took a third of its time.
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "GOGC": "400"})

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def ask(self, ask, **fields):
        self.process.stdin.write(json.dumps(dict(fields, ask=ask), separators=(",", ":")).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise OracleError(f"schedcheck ended with status {self.process.wait()} when it was asked: {ask} {fields}"[:2000])
        answer = json.loads(line)
        if answer.get("error"):
            raise OracleError(answer["error"])
        return answer

    def load(self, objects):
        """What is asked from here on is about these."""
        self.ask("load", objects=by_kind(objects))

    def check(self, remove, placements, off=()):
        return self.ask("check", remove=remove, placements=placements, off=list(off))

    def can(self, remove, pods, ways=("first", "free"), placements=(), exclude=(), off=()):
        return self.ask("can", remove=remove, pods=pods, ways=list(ways), placements=list(placements),
                        exclude=list(exclude), off=list(off))

    def place(self, objects, pods, way):
        """Of a cluster that is being made (clusters.py): pod -> node, of those that fit."""
        self.load(objects)
        found = self.can([], pods, ways=[way])["ways"][way]
        return {p["pod"]: p["node"] for p in found["placements"]}
