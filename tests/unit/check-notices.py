#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays the sample commands that announce the end of a machine (packaging/examples/notices).

Usage: check-notices.py TREE
"""

import datetime
import http.server
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

FOLDER = os.path.join(sys.argv[1], "packaging", "examples", "notices")
# As the agent runs them (agent/notice/notice-exec.h).
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "VESPER_NODE": "rack-3-7"}


def run(name, *arguments):
    return subprocess.run([os.path.join(FOLDER, name), *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=60,
                          check=False)


def rfc3339(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc)


class Ups(unittest.TestCase):
    def ups(self, status, runtime="600", code=0):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "upsc")
            with open(path, "w", encoding="ascii") as f:
                f.write(f'#!/bin/sh\ncase $2 in ups.status) echo "{status}" ;; *) echo "{runtime}" ;; esac\nexit {code}\n')
            os.chmod(path, stat.S_IRWXU)
            return run("ups", "ups@localhost", path)

    def test_line_power(self):
        for status in ("OL", "OL CHRG", "OL BOOST", "BOB"):
            done = self.ups(status)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), status)

    def test_battery(self):
        now = datetime.datetime.now(datetime.timezone.utc)
        for status in ("OB", "OB DISCHRG", "ALARM OB LB"):
            done = self.ups(status, "600.5")
            self.assertEqual(done.returncode, 0, done)
            notice = json.loads(done.stdout)
            self.assertEqual((notice["id"], notice["kind"], notice["action"]), ("ups-on-battery", "maintenance", "stop"))
            left = (rfc3339(notice["deadline"]) - now).total_seconds()
            self.assertTrue(535 <= left <= 605, left)

    def test_no_ups(self):
        self.assertNotEqual(self.ups("", code=1).returncode, 0)
        self.assertNotEqual(run("ups").returncode, 0)


class Windows(unittest.TestCase):
    def setUp(self):
        test = self
        self.body = b"[]"

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(test.body)

            def log_message(self, *_):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05, ), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def ask(self, windows):
        self.body = json.dumps(windows).encode() if not isinstance(windows, bytes) else windows
        return run("maintenance-windows", f"http://127.0.0.1:{self.server.server_address[1]}/")

    def test_windows(self):
        window = {"ticket": 4711, "nodes": ["rack-3-*"], "start": "2999-01-21T09:00:00Z", "end": "2999-01-21T10:00:00Z",
                  "state": "approved"}
        done = self.ask([
            window, {**window, "ticket": 1, "nodes": ["rack-4-*"]}, {**window, "ticket": 2, "state": "draft"},
            {**window, "ticket": 3, "start": "2001-01-01T00:00:00Z", "end": "2001-01-02T00:00:00Z"}
        ])
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(json.loads(done.stdout), [
            {"id": "ticket-4711", "kind": "maintenance", "action": "reboot", "deadline": "2999-01-21T09:00:00Z"}])

    def test_trouble(self):
        for answer in (b"<html>", [{"ticket": 1}], {"message": "log in"}):
            done = self.ask(answer)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(run("maintenance-windows", "http://127.0.0.1:1/").returncode, 1)
        self.assertEqual(run("maintenance-windows").returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
