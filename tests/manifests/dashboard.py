#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packaging/dashboard: alerts by promtool's own tests, and each query of alerts and panels on a Prometheus that scrapes a
coordinator which leads on the fake cluster.

    tests/manifests/dashboard.py     VESPER_BUILD=DIR: where the programs were built (default: build/)

Prints each case and, last, "N passed, N failed, N skipped". Skipped where tests/setup.sh can give no Prometheus.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "cluster"))

import procs  # noqa: E402

BUILD = os.environ.get("VESPER_BUILD", os.path.join(TOP, "build"))
DASHBOARD = os.path.join(TOP, "packaging", "dashboard")
LIMIT = 300  # Seconds after which a wait for an event fails. This limit only ends what hangs.
WORLD = {"objects": [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vesper-system"}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"pool": "web"}},
     "spec": {"providerID": "aws:///us-east-1a/i-00000001"}},
    {"apiVersion": "vesper.sh/v1alpha1", "kind": "NodePool", "metadata": {"name": "web"},
     "spec": {"selector": {"matchLabels": {"pool": "web"}}, "provider": {"identity": "ProviderID"}, "disruption": {"expireAfter": "720h"}}}],
    "instances": [{"id": "i-00000001", "zone": "us-east-1a", "node": "n1"}]}


def wait_for(what, condition):
    deadline = time.monotonic() + LIMIT
    while not (result := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {LIMIT} s"
        time.sleep(0.1)
    return result


def promtool(prometheus, *arguments):
    done = subprocess.run([os.path.join(prometheus, "promtool"), *arguments], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def rules(prometheus, _directory):
    """the alerting rules are what Prometheus reads"""
    promtool(prometheus, "check", "rules", os.path.join(DASHBOARD, "alerts.yaml"))


def alerts(prometheus, directory):
    """each alert is set off by what it is about, after its time, and by nothing else; each has a test"""
    with open(os.path.join(DASHBOARD, "alerts.yaml"), encoding="utf-8") as f:
        names = re.findall(r"alert: (\w+)", f.read())
    with open(os.path.join(HERE, "alerts-test.yaml"), encoding="utf-8") as f:
        text = f.read()
    untested = [n for n in names if not re.search(rf"alertname: {n}\n\s+exp_alerts", text)]
    assert names and not untested, f"no test expects {untested}"
    path = os.path.join(directory, "alerts-test.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace("[ALERTS]", json.dumps([os.path.join(DASHBOARD, "alerts.yaml")])))
    promtool(prometheus, "test", "rules", path)


class Scraped:
    """A fake cluster, a coordinator that leads, and a Prometheus that scrapes it, on loopback."""
    def __init__(self, prometheus, directory):
        self.prometheus, self.directory, self.processes = prometheus, directory, []
        self._ports = procs.Ports()

    def path(self, name):
        return os.path.join(self.directory, name)

    def spawn(self, name, *command):
        with open(self.path(name + ".log"), "wb") as log:
            self.processes.append(procs.spawn(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def said(self, name):
        with open(self.path(name + ".log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def __enter__(self):
        with open(self.path("world.json"), "w", encoding="utf-8") as f:
            json.dump(WORLD, f)
        self.spawn("fake", os.path.join(BUILD, "tests", "fake", "fake-cluster"), "--dir", self.directory, "--world", self.path("world.json"))
        wait_for("the fake cluster", lambda: os.path.exists(self.path("endpoints.json")))
        with open(self.path("endpoints.json"), encoding="utf-8") as f:
            ec2 = json.load(f)["ec2"]
        ports = [self._ports.take(), self._ports.take()]
        settings = {"Kubernetes.Kubeconfig": self.path("kubeconfig-admin"), "Provider.Region": "us-east-1", "Provider.Endpoint": ec2,
                    "Log.Target": "text", "Metrics.Listen": f"127.0.0.1:{ports[0]}"}
        self.spawn("coordinator", os.path.join(BUILD, "coordinator", "vesper-coordinator"),
                   *[a for key, value in settings.items() for a in ("--set", f"{key}={value}")])
        wait_for("a leader", lambda: "Leading, as" in self.said("coordinator"))
        with open(self.path("prometheus.yml"), "w", encoding="utf-8") as f:
            json.dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [
                {"job_name": "vesper", "static_configs": [{"targets": [f"127.0.0.1:{ports[0]}"]}]}]}, f)
        self.spawn("prometheus", os.path.join(self.prometheus, "prometheus"), "--config.file=" + self.path("prometheus.yml"),
                   "--storage.tsdb.path=" + self.path("data"), f"--web.listen-address=127.0.0.1:{ports[1]}")
        self.address = f"http://127.0.0.1:{ports[1]}"
        wait_for("two scrapes", lambda: self.count("count_over_time(vesper_coordinator_leader[1m]) >= 2"))
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        self._ports.release()

    def count(self, expression):
        """How many series it gives. A query that is none is an error; a Prometheus that is not ready yet has none."""
        url = f"{self.address}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        try:
            with urllib.request.urlopen(url, timeout=LIMIT) as answer:
                return len(json.load(answer)["data"]["result"])
        except urllib.error.HTTPError as e:
            if e.code == 503:
                return 0
            raise AssertionError(f"{expression}: {e.read().decode()}") from e
        except (urllib.error.URLError, ConnectionError):
            return 0  # it is not up yet


def families(expression):
    return set(re.findall(r"(?:vesper|process)_[a-z_]+", expression))


def panels(prometheus, directory):
    """each panel's query is answered by a real scrape, and all metrics of alerts and panels are there"""
    with open(os.path.join(DASHBOARD, "vesper.json"), encoding="utf-8") as f:
        queries = [(p["title"], t["expr"]) for p in json.load(f)["panels"] for t in p["targets"]]
    with open(os.path.join(DASHBOARD, "alerts.yaml"), encoding="utf-8") as f:
        wanted = families(f.read()).union(*(families(q) for _, q in queries))
    with Scraped(prometheus, directory) as scraped:
        wait_for("a node that is judged", lambda: scraped.count("vesper_coordinator_voluntary_disruption_nodes > 0"))
        empty = [(title, q) for title, q in queries if scraped.count(q) == 0]
        absent = [name for name in sorted(wanted) if scraped.count(name) == 0]
    assert not empty, f"panels that show nothing: {empty}"
    assert not absent, f"no scrape has {absent}"
    print(f"          {len(queries)} queries, {len(wanted)} metrics")


def main():
    done = subprocess.run(["bash", os.path.join(TOP, "tests", "setup.sh"), "prometheus"], stdout=subprocess.PIPE, text=True, check=False)
    cases = (rules, alerts, panels)
    if done.returncode != 0:
        print(f"skipped dashboard: no Prometheus could be had\n0 passed, 0 failed, {len(cases)} skipped")
        return 0
    failed = 0
    for case in cases:
        with tempfile.TemporaryDirectory() as directory:
            try:
                case(done.stdout.strip(), directory)
                print(f"ok      dashboard: {case.__doc__}")
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print(f"FAILED  dashboard: {case.__doc__}")
                print("".join("        ! " + line + "\n" for line in traceback.format_exc().splitlines()[-12:]), end="")
    print(f"{len(cases) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
