# SPDX-License-Identifier: Apache-2.0
"""Keys and certificates of the test cluster, made by the openssl command: EC P-256, one CA for all."""

import contextlib
import fcntl
import os
import re
import subprocess

_EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


class Pki:
    def __init__(self, directory):
        self.directory = directory
        self.ca = os.path.join(directory, "ca.crt")
        self.ca_key = os.path.join(directory, "ca.key")
        self.account_key = os.path.join(directory, "service-account.key")
        self.account_public = os.path.join(directory, "service-account.pub")

    def create(self):
        """The CA and the key pair that signs service account tokens."""
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        _openssl("req", "-x509", *_EC, "-keyout", self.ca_key, "-out", self.ca, "-days", "30",
                 "-subj", "/CN=vesper-test-ca",
                 "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature")
        _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
                 "-out", self.account_key)
        _openssl("pkey", "-in", self.account_key, "-pubout", "-out", self.account_public)

    def issue(self, common_name, organizations=(), names=()):
        """A certificate for clients, and for servers too when names ("DNS:x", "IP:y") are given.

        Kubernetes takes the user from CN and the groups from O. Returns the paths of certificate and key;
        they are made once for the same subject.
        """
        base = os.path.join(self.directory, _file_name(common_name, organizations))
        certificate, key = base + ".crt", base + ".key"
        with self._locked():
            if not os.path.exists(certificate):
                self._sign(certificate, key, common_name, organizations, names)
        return certificate, key

    @contextlib.contextmanager
    def _locked(self):
        """Threads, and processes that are attached to the same cluster, may want the same certificate."""
        fd = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _sign(self, certificate, key, common_name, organizations, names):
        subject = "".join(f"/O={_escape(o)}" for o in organizations) + f"/CN={_escape(common_name)}"
        usage = "clientAuth,serverAuth" if names else "clientAuth"
        more = ["-addext", "subjectAltName=" + ",".join(names)] if names else []
        temporary = f"{certificate}.new"
        _openssl("req", "-x509", "-CA", self.ca, "-CAkey", self.ca_key, *_EC, "-keyout", key,
                 "-out", temporary, "-days", "30", "-subj", subject,
                 "-addext", "basicConstraints=critical,CA:FALSE",
                 "-addext", f"extendedKeyUsage={usage}", *more)
        os.rename(temporary, certificate)


def _openssl(*arguments):
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl {' '.join(arguments)}: {done.stderr.strip()}")


def _escape(value):
    return re.sub(r"([/+\\])", r"\\\1", value)


def _file_name(common_name, organizations):
    """Readable and unique: a colon becomes "_", which no Kubernetes name has."""
    name = "+".join([common_name, *organizations]).replace(":", "_")
    return re.sub(r"[^A-Za-z0-9._+-]", lambda m: f"%{ord(m[0]):02x}", name)
