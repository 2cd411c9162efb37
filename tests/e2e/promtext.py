# SPDX-License-Identifier: Apache-2.0
"""Prometheus' text format 0.0.4, read as strictly as `promtool check metrics` does, with what its lint asks of
names."""

import math
import re
import urllib.error
import urllib.request

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"^({_NAME})(?:\{{(.*)\}})? (\S+)$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
_TYPES = ("counter", "gauge", "histogram", "summary", "untyped")
_PARTS = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}


class Page:
    """families: name -> type; samples: (name, ((label, value), ...)) -> number."""
    def __init__(self, text):
        self.families = {}
        self.helps = {}
        self.samples = {}
        assert text.endswith("\n"), "the page does not end with a line feed"
        self._current = None
        self._closed = set()
        for number, line in enumerate(text.splitlines(), 1):
            try:
                self._line(line)
            except (AssertionError, ValueError) as e:
                raise AssertionError(f"line {number} of the metrics, '{line}': {e}") from e
        self._check_families()

    def value(self, name, **labels):
        found = self.samples.get((name, tuple(sorted(labels.items()))))
        assert found is not None, f"there is no {name} with {labels or 'no labels'}"
        return found

    def _line(self, line):
        if line.startswith("# HELP ") or line.startswith("# TYPE "):
            word, name, rest = (line[2:].split(" ", 2) + [""])[:3]
            assert re.fullmatch(_NAME, name), "no name of a metric"
            self._enter(name)
            (self._help if word == "HELP" else self._type)(name, rest)
        elif line and not line.startswith("#"):
            self._sample(line)

    def _enter(self, name):
        if name == self._current:
            return
        assert name not in self._closed, f"the lines of {name} do not stand together"
        if self._current:
            self._closed.add(self._current)
        self._current = name

    def _help(self, name, text):
        assert name not in self.helps, "a second HELP"
        assert text.strip(), "a HELP without text"
        self.helps[name] = text

    def _type(self, name, kind):
        assert name not in self.families, "a second TYPE"
        assert kind in _TYPES, f"'{kind}' is no type"
        self.families[name] = kind

    def _sample(self, line):
        found = _SAMPLE.match(line)
        assert found, "no sample"
        name, labels, number = found[1], found[2], float(found[3])
        family = self._family_of(name)
        assert family == self._current, f"stands among the lines of {self._current}"
        pairs = []
        while labels:
            label = _LABEL.match(labels)
            assert label, f"'{labels}' is no list of labels"
            pairs.append((label[1], label[2]))
            labels = labels[label.end():]
        key = (name, tuple(sorted(pairs)))
        assert len(dict(pairs)) == len(pairs), "a label twice"
        assert key not in self.samples, "a second time"
        self.samples[key] = number

    def _family_of(self, name):
        for family, kind in self.families.items():
            if any(name == family + part for part in _PARTS.get(kind, ("", ))):
                return family
        raise AssertionError("its TYPE does not stand before it")

    def _check_families(self):
        for name, kind in self.families.items():
            assert name in self.helps, f"{name} has no HELP"
            assert re.fullmatch("[a-z][a-z0-9_]*", name), f"{name} is not in snake case"
            assert name.endswith("_total") == (kind == "counter"), f"{name} is a {kind}"
            if kind == "counter":
                assert all(v >= 0 for (n, _), v in self.samples.items() if n == name), f"{name} is negative"
            if kind == "histogram":
                self._check_histogram(name)

    def _check_histogram(self, name):
        buckets = sorted((float(dict(labels)["le"]), v) for (n, labels), v in self.samples.items()
                         if n == name + "_bucket")
        assert buckets and buckets[-1][0] == math.inf, f"{name} has no bucket +Inf"
        counts = [v for _, v in buckets]
        assert counts == sorted(counts), f"the buckets of {name} do not add up: {buckets}"
        assert self.value(name + "_count") == counts[-1], f"{name}: its count is not its last bucket"
        assert self.value(name + "_sum") >= 0, f"{name}: its sum is negative"


def fetch(url, timeout=60):
    """Status, type and text, whatever the status."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, answer.headers.get("Content-Type"), answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.headers.get("Content-Type"), e.read().decode()


def page(base):
    """The metrics of http://ADDRESS:PORT, checked."""
    status, kind, text = fetch(base + "/metrics")
    assert status == 200, f"/metrics answers {status}"
    assert (kind or "").startswith("text/plain; version=0.0.4"), f"/metrics is '{kind}'"
    return Page(text)
