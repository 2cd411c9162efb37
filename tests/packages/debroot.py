# SPDX-License-Identifier: Apache-2.0
"""A Debian system in a folder, to install packages into: made once by debootstrap and cached, copied for each test."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TESTS, "cluster"))

from cluster import cache_directory  # noqa: E402

# What the packages depend on beyond a minimal system.
PACKAGES = ("systemd", "ca-certificates", "libcjson1", "libnl-3-200", "libnl-route-3-200", "libcurl4", "libmicrohttpd12",
            "libyaml-0-2")
# What comes and goes by itself.
PASSING = ("proc", "dev", "sys", "run", "tmp", "var/tmp", "var/cache", "var/log", "var/lib/dpkg")
# Links of units are really made and removed; what is asked of a running systemd is written down.
SYSTEMCTL = """#!/bin/sh
case "$*" in
--root=*) exec /usr/bin/systemctl.real "$@" ;;
*is-enabled*) echo enabled ;;
esac
echo "$*" >>/var/tmp/systemctl.log
"""


class Unavailable(Exception):
    """This machine cannot make such a system; the text says why."""


def os_release(key):
    with open("/etc/os-release", encoding="utf-8") as f:
        for line in f:
            if line.startswith(key + "="):
                return line.split("=", 1)[1].strip().strip('"')
    return ""


def archive():
    """(address, suite) that this machine's own packages come from."""
    suite = os_release("VERSION_CODENAME")
    try:
        out = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"],
                             capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as e:
        raise Unavailable(f"no Debian archive is configured: {e}") from e
    for line in out.splitlines():
        address, release = line.rsplit(" ", 1)
        if release == suite:
            return address, suite
    raise Unavailable(f"apt knows no archive of {suite}")


def _made_once(name, *ingredients, make):
    """The cached folder of that name, filled by make(folder) if it is not there yet."""
    key = hashlib.sha256(" ".join(ingredients).encode()).hexdigest()[:16]
    path = os.path.join(cache_directory(), f"{name}-{key}")
    if os.path.isdir(path):
        return path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    new = tempfile.mkdtemp(prefix=f"making-{name}-", dir=os.path.dirname(path))
    os.chmod(new, 0o755)
    try:
        make(new)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    try:
        os.rename(new, path)
    except OSError:  # somebody else has made it meanwhile
        shutil.rmtree(new, ignore_errors=True)
        if not os.path.isdir(path):
            raise
    return path


def _made_by(what, *command):
    """In a mount namespace of its own: mounts may be left."""
    done = subprocess.run(["unshare", "-m", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise Unavailable(f"{what} failed: " + " | ".join(done.stdout.splitlines()[-3:]))


def base(packages=PACKAGES):
    """The cached system's folder, with these packages beside the minimum."""
    if os.geteuid() != 0:
        raise Unavailable("only root can make a system in a folder")
    if not shutil.which("debootstrap"):
        raise Unavailable("debootstrap is not installed")
    address, suite = archive()
    return _made_once("debroot", suite, *packages, make=lambda folder: _made_by(
        "debootstrap", "debootstrap", "--variant=minbase", "--include=" + ",".join(packages), suite, folder, address))


def base_with_backports(packages, newer):
    """base(packages), with those of `newer` as Debian has backported them."""
    address, suite = archive()
    script = """mount --bind /proc "$1/proc" && mount --bind /dev "$1/dev" &&
        echo "deb $2 $3-backports main" >"$1/etc/apt/sources.list.d/backports.list" && root=$1 suite=$3 && shift 3 &&
        export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 && chroot "$root" apt-get -qq update &&
        chroot "$root" apt-get -qq -y --no-install-recommends -t "$suite-backports" install "$@" && chroot "$root" apt-get clean"""

    def make(folder):
        subprocess.run(["cp", "-a", "--reflink=auto", base(packages) + "/.", folder], check=True)
        _made_by(f"installing {', '.join(newer)} of {suite}-backports", "sh", "-c", script, "sh", folder, address, suite, *newer)

    return _made_once("debroot-newer", suite, *packages, "newer", *newer, make=make)


class Root:
    """A copy of the system in `folder`. Its systemd only writes down what it is asked."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "root")
        subprocess.run(["cp", "-a", "--reflink=auto", base(), self.path], check=True)
        os.makedirs(self.at("run/systemd/system"), exist_ok=True)
        os.rename(self.at("usr/bin/systemctl"), self.at("usr/bin/systemctl.real"))
        self.write("usr/bin/systemctl", SYSTEMCTL, 0o755)

    def at(self, path):
        return os.path.join(self.path, path.lstrip("/"))

    def write(self, path, text, mode=0o644):
        os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
        with open(self.at(path), "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self.at(path), mode)

    def read(self, path):
        with open(self.at(path), encoding="utf-8") as f:
            return f.read()

    def exists(self, path):
        return os.path.lexists(self.at(path))

    def run(self, *command):
        """Runs a command in it, with /proc; the completed process, output and errors together."""
        return self.run_outside("chroot", self.path, *command)

    def run_outside(self, *command):
        """Runs a command of this machine while the root has its /proc and /dev."""
        script = 'mount --bind /proc "$1/proc" && mount --bind /dev "$1/dev" && shift && exec "$@"'
        return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", self.path] + list(command),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive",
                                   "LC_ALL": "C.UTF-8"}, timeout=300)

    def asked_of_systemd(self):
        """The lines since the last call."""
        path = "var/tmp/systemctl.log"
        lines = self.read(path).splitlines() if self.exists(path) else []
        if lines:
            os.unlink(self.at(path))
        return lines

    def files(self):
        """{path: what it is} of all that a package could leave behind."""
        seen = {}
        for folder, folders, names in os.walk(self.path):
            at = os.path.relpath(folder, self.path)
            folders[:] = [d for d in folders if os.path.normpath(os.path.join(at, d)) not in PASSING]
            for name in names + folders:
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    seen[os.path.normpath(os.path.join(at, name))] = "link to " + os.readlink(path)
                elif os.path.isdir(path):
                    seen[os.path.normpath(os.path.join(at, name))] = "folder"
                else:
                    with open(path, "rb") as f:
                        seen[os.path.normpath(os.path.join(at, name))] = hashlib.sha256(f.read()).hexdigest()
        return seen
