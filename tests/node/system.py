# SPDX-License-Identifier: Apache-2.0
"""What a node of the bed boots from, in layers of an overlay: a Debian with containerd (cached), the bed's own files (kubelet,
image, network), and our package, installed by dpkg."""

import functools
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
TOP = os.path.dirname(TESTS)
for folder in ("cluster", "e2e", "packages", "manifests"):
    sys.path.insert(0, os.path.join(TESTS, folder))

import debroot  # noqa: E402
from cluster import build as build_cluster  # noqa: E402
from daemons import build_directory  # noqa: E402
from debroot import Unavailable  # noqa: E402,F401

FILES = os.path.join(HERE, "files")
# Beyond a minimal system: a node, and what our package depends on.
PACKAGES = ("systemd", "systemd-sysv", "dbus", "containerd", "runc", "containernetworking-plugins", "iptables", "iproute2",
            "conntrack", "socat", "mount", "util-linux", "kmod", "procps", "ca-certificates", "libcjson1", "libnl-3-200",
            "libnl-route-3-200", "libcurl4", "libmicrohttpd12", "libyaml-0-2")
# What a newer machine has of them: a systemd that knows soft-reboot (254).
NEWER = ("systemd", "systemd-sysv", "libsystemd0", "libpam-systemd", "libudev1")
IMAGE = "localhost/payload:1"
# What the package is made of.
SOURCES = ("agent", "coordinator", "shared", "systemd", "packaging", "meson.build", "meson_options.txt")
MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer")


def run(*command, **options):
    """Its output; a failure tells all of it."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
                          errors="replace", **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def prepare(newer, helm):
    """All that is made once: the base system, the one with a newer systemd and helm if these are wanted, the package, the control
    plane."""
    debroot.base(PACKAGES)
    if newer:
        try:
            debroot.base_with_backports(PACKAGES, NEWER)
        except Unavailable as e:  # the case that wants it says so, too
            print(f"no newer systemd: {e}", flush=True)
    package()
    build_cluster()
    if helm:  # what it could not be built for, the cases say that want it
        subprocess.run([os.path.join(TESTS, "manifests", "build.sh")], stdout=subprocess.DEVNULL, check=False)


def _sources_key():
    digest = hashlib.sha256()
    for source in SOURCES:
        top = os.path.join(TOP, source)
        paths = [top] if os.path.isfile(top) else sorted(
            os.path.join(folder, f) for folder, _, files in os.walk(top) if "__pycache__" not in folder for f in files)
        for path in paths:
            digest.update(os.path.relpath(path, TOP).encode() + b"\0")
            with open(path, "rb") as f:
                digest.update(hashlib.sha256(f.read()).digest())
    return digest.hexdigest()[:16]


@functools.cache  # what a run has begun with
def package(name="vesper-agent"):
    """The path of that .deb of this tree; built once for the same sources."""
    folder = os.path.join(build_directory(), "node", "deb-" + _sources_key())
    if not os.path.isdir(folder):
        new = os.path.join(os.path.dirname(folder), "deb-new")
        for old in glob.glob(os.path.join(os.path.dirname(folder), "deb-*")):
            shutil.rmtree(old)
        os.makedirs(new)
        run("nice", os.path.join(TOP, "packaging", "debian", "build.sh"), new)
        os.rename(new, folder)
    found = glob.glob(os.path.join(folder, name + "_*.deb"))
    if len(found) != 1:
        raise RuntimeError(f"expected one {name}_*.deb in {folder}, found {found}")
    return found[0]


def newer_package(folder):
    """The same package with a higher version."""
    tree = os.path.join(folder, "newer")
    run("dpkg-deb", "-R", package(), tree)
    control = os.path.join(tree, "DEBIAN", "control")
    with open(control, encoding="utf-8") as f:
        text = f.read()
    with open(control, "w", encoding="utf-8") as f:
        f.write(re.sub(r"^(Version: .*)$", r"\1+newer", text, flags=re.M))
    run("dpkg-deb", "--root-owner-group", "-b", tree, tree + ".deb")
    shutil.rmtree(tree)
    return tree + ".deb"


def _image(folder):
    """A docker archive made by hand: one layer with one static program."""
    work = os.path.join(folder, "image")
    os.makedirs(work)
    run("gcc", "-O2", "-static", "-o", os.path.join(work, "payload"), os.path.join(FILES, "payload.c"))

    def root_owned(info):
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        return info

    layer = os.path.join(work, "layer.tar")
    with tarfile.open(layer, "w") as tar:
        tar.add(os.path.join(work, "payload"), "payload", filter=root_owned)
        tar.add(os.path.join(work, "payload"), "pause", filter=root_owned)
    with open(layer, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    for name, value in (("config.json", {"architecture": "amd64", "os": "linux", "config": {"Entrypoint": ["/pause"]},
                                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]}}),
                        ("manifest.json", [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}])):
        with open(os.path.join(work, name), "w", encoding="utf-8") as f:
            json.dump(value, f)
    path = os.path.join(folder, "payload.tar")
    with tarfile.open(path, "w") as tar:
        for name in ("manifest.json", "config.json", "layer.tar"):
            tar.add(os.path.join(work, name), name)
    shutil.rmtree(work)
    return path


def mount_overlay(target, lower, upper, work):
    for path in (target, upper, work):
        os.makedirs(path, exist_ok=True)
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={':'.join(lower)},upperdir={upper},workdir={work}", target)


class Layers:
    """bed: a node without our package; vesper: with it; newer: with it and a newer systemd. Lists for an overlay's
    lowerdir=, the topmost first."""
    def __init__(self, folder):
        self.folder = folder
        base = debroot.base(PACKAGES)
        self.bed = [self._make_bed("bed", base), base]
        self.vesper = [self._make("vesper", self.bed, self._vesper)] + self.bed

    @functools.cached_property
    def newer(self):
        base = debroot.base_with_backports(PACKAGES, NEWER)
        bed = [self._make_bed("newer-bed", base), base]
        return [self._make("newer-vesper", bed, self._vesper)] + bed

    def _make(self, name, lower, fill):
        upper, root = os.path.join(self.folder, name), os.path.join(self.folder, name + "-root")
        mount_overlay(root, lower, upper, os.path.join(self.folder, name + "-work"))
        try:
            fill(root)
        finally:
            run("umount", root)
        return upper

    def _make_bed(self, name, base):
        upper = self._make(name, [base], self._bed)
        program, kubelet = os.path.join(build_cluster(), "cluster"), os.path.join(upper, "usr", "local", "bin", "kubelet")
        os.makedirs(os.path.dirname(kubelet), exist_ok=True)
        try:
            os.link(program, kubelet)  # as much less to load, for the API server is the same program
        except OSError:
            shutil.copy(program, kubelet)
        return upper

    def _bed(self, root):
        def put(name, path, mode=0o644):
            target = os.path.join(root, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(os.path.join(FILES, name), target)
            os.chmod(target, mode)

        put("bed-init", "usr/local/sbin/bed-init", 0o755)
        put("kubelet.service", "etc/systemd/system/kubelet.service")
        put("bed-image.service", "etc/systemd/system/bed-image.service")
        put("containerd-bed.conf", "etc/systemd/system/containerd.service.d/bed.conf")
        put("scope-bed.conf", "etc/systemd/system/cri-containerd-.scope.d/90-bed.conf")
        put("containerd.toml", "etc/containerd/config.toml")
        os.makedirs(os.path.join(root, "usr/local/share/bed"))
        shutil.move(_image(self.folder), os.path.join(root, "usr/local/share/bed/payload.tar"))
        for path in ("etc/machine-id", "etc/resolv.conf"):
            path = os.path.join(root, path)
            if os.path.lexists(path):
                os.unlink(path)
            with open(path, "w", encoding="ascii"):
                pass
        run("systemctl", "--root=" + root, "enable", "-q", "kubelet", "bed-image", "containerd")
        run("systemctl", "--root=" + root, "mask", "-q", *MASKED)

    def _vesper(self, root):
        shutil.copy(package(), os.path.join(root, "tmp", "vesper-agent.deb"))
        run("mount", "--bind", "/proc", os.path.join(root, "proc"))
        try:
            # As somebody does who makes an image of a node.
            run("chroot", root, "dpkg", "-i", "/tmp/vesper-agent.deb",
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"})
        finally:
            run("umount", os.path.join(root, "proc"))
        os.unlink(os.path.join(root, "tmp", "vesper-agent.deb"))
        # The firmware is this machine's, and the nodes have no providerID: nothing says that they are EC2's.
        os.makedirs(os.path.join(root, "etc/vesper/agent.conf.d"), exist_ok=True)
        with open(os.path.join(root, "etc/vesper/agent.conf.d/10-bed.conf"), "w", encoding="ascii") as f:
            f.write("[Metadata]\nSource=ec2\n")
