# SPDX-License-Identifier: Apache-2.0
"""Runs a program as a container runtime would: a root of its own that is read-only, mounts, a user, no capability.

    incontainer.py SPEC     a file of JSON: {"root", "mounts": [[from, to, read-only]], "user", "group", "argv", "env"}

For root. What is missing to a real one: namespaces of pids and network, seccomp, cgroups.
"""

import ctypes
import json
import os
import subprocess
import sys

CLONE_NEWNS = 0x00020000
# Of those that every OCI runtime gives.
DEVICES = ("null", "zero", "full", "random", "urandom")
PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 23, 24, 38


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        spec = json.load(f)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        sys.exit(f"unshare: {os.strerror(ctypes.get_errno())}")
    mount("--make-rprivate", "/")
    root = spec["root"]
    mount("--bind", root, root)
    mount("--rbind", "/proc", os.path.join(root, "proc"))
    os.makedirs(os.path.join(root, "dev"), exist_ok=True)
    for name in DEVICES:
        with open(os.path.join(root, "dev", name), "wb"):
            pass
        mount("--bind", "/dev/" + name, os.path.join(root, "dev", name))
    for source, target, read_only in spec["mounts"]:
        target = root + target
        mount("--bind", source, target)
        if read_only:
            mount("-o", "remount,bind,ro", target)
    mount("-o", "remount,bind,ro", root)
    os.chroot(root)
    os.chdir("/")
    capability = 0
    while libc.prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0:
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
        capability += 1
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.setgroups([])
    os.setgid(spec["group"])
    os.setuid(spec["user"])
    os.execve(spec["argv"][0], spec["argv"], spec["env"])


if __name__ == "__main__":
    main()
