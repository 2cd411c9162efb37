#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of `vesperctl plan -o html` in a browser without a screen: what is on them is asked of its own layout (measure.html), in
light and dark, on a desk and on a phone. Screenshots stay in BUILD/page for people to look at.

run.py      vesperctl is taken from VESPER_BUILD (default: build/); the last line counts
"""

import contextlib
import html
import http.server
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("VESPER_BUILD", os.path.join(TOP, "build")))
CTL = os.path.join(BUILD, "coordinator", "vesperctl")
OUT = os.path.join(BUILD, "page")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LIMIT = 120
DESK, PHONE = 1200, 400
PLANS = {  # name: cluster, more arguments, exit status
    "small": ("small", (), 0),
    "without": ("small", ("--without", "ip-10-0-1-12,ip-10-0-1-13", "--with", "m5.large:2"), 0),
    "refused": ("small", ("--without", "ip-10-0-1-14,ip-10-0-3-31"), 3),
    "hostile": ("hostile", (), 0),
    "nodes-500": ("nodes-500", (), 0),
    "nodes-5000": ("nodes-5000", (), 0),
}

sys.path.insert(0, HERE)
import clusters  # noqa: E402


class Served(contextlib.AbstractContextManager):
    """A folder on loopback; what was asked of it is in .asked."""

    def __init__(self, folder):
        asked = self.asked = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *a):
                super().__init__(*a, directory=folder)

            def log_message(self, *_):
                asked.append(self.path.split("?")[0])

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def browse(url, *words):
    """Standard output, and what the page has written to its console. Names of other machines do not exist for it."""
    with tempfile.TemporaryDirectory(prefix="vesper-page.") as profile:
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={profile}",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--virtual-time-budget=20000", *words, url],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False, env={**os.environ, "HOME": profile})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def scheme(is_dark):
    return f"--blink-settings=preferredColorScheme={0 if is_dark else 1}"


class Case:
    """One page of a plan, in a folder of its own."""

    def __init__(self, folder, name):
        cluster, words, status = PLANS[name]
        kept = os.path.join(folder, cluster + ".snapshot")
        if not os.path.exists(kept):
            items = getattr(clusters, cluster)() if "-" not in cluster else clusters.large(int(cluster.split("-")[1]), 4)
            with open(kept, "w", encoding="utf-8") as f:
                f.write(clusters.snapshot(items))
        page, plan = (subprocess.run([CTL, "plan", "--snapshot", kept, *words, "-o", form], capture_output=True, check=False, timeout=LIMIT)
                      for form in ("html", "json"))
        assert (page.returncode, plan.returncode) == (status, status), page.stderr + plan.stderr
        self.name = name
        self.page = page.stdout
        self.plan = json.loads(plan.stdout)
        self.folder = os.path.join(folder, name)
        os.makedirs(self.folder)
        shutil.copy(os.path.join(HERE, "measure.html"), self.folder)
        self.write(self.page)

    def write(self, page):
        with open(os.path.join(self.folder, "page.html"), "wb") as f:
            f.write(page)

    def moves(self):
        return [m for s in self.plan["steps"] for m in s["moves"]] if "steps" in self.plan else self.plan["moves"] if self.plan["canGo"] else []

    def measure(self, width, is_dark):
        """What the browser says, what the console has, and what was asked of the server."""
        with Served(self.folder) as served:
            out, console = browse(f"{served.url}/measure.html?width={width}", scheme(is_dark), f"--window-size={max(width, 500)},900", "--dump-dom")
        found = re.search(r'<pre id="answer">(.+?)</pre>', out, re.S)
        assert found, f"no answer: {out[-500:]}, console {console}"
        return json.loads(html.unescape(found.group(1))), console, served.asked


def near(a, b, what):
    assert abs(a - b) <= 1.2, f"{what}: {a:.1f} instead of {b}"


def check_bars(answer):
    """As wide as the figure beside it says."""
    for bar in answer["bars"]:
        figure = bar["figure"].replace("\u00a0%", "")
        before, _, after = figure.partition(" \u2192 ")
        was, now = min(bar["keep"] + bar["leave"], 100), min(bar["keep"] + bar["come"], 100)
        if before != "new":
            near(was, min(float(before), 100), f"before, of '{figure}'")
        near(now, 0 if after == "gone" else min(float(after or before), 100), f"after, of '{figure}'")


def check_layout(case, width, is_dark):
    answer, console, asked = case.measure(width, is_dark)
    where = f"{case.name}, {width} wide, {'dark' if is_dark else 'light'}"
    assert console == [], f"{where}: {console}"
    assert sorted(asked) == ["/measure.html", "/page.html"], f"{where}: it asked for {asked}"
    assert answer["dark"] == is_dark and (answer["background"] < 0.1 if is_dark else answer["background"] > 0.8), f"{where}: {answer['background']}"
    for what in "overflow", "overflowOpen":
        assert answer[what] <= 0, f"{where}: {answer[what]} pixels too wide ({what})"
    assert not answer["pale"], f"{where}: too pale to read: {answer['pale']}"
    assert not answer["hidden"], f"{where}: not visible: {answer['hidden']}"
    assert not answer["cut"], f"{where}: cut off: {answer['cut']}"
    assert answer["scripts"] == 0, f"{where}: a script"
    assert len(answer["bars"]) == 2 * answer["cards"], f"{where}: {len(answer['bars'])} bars of {answer['cards']} cards"
    check_bars(answer)
    check_counts(case, answer, where)


def check_counts(case, answer, where):
    n = case.plan["snapshot"]["nodes"] + (2 if case.name == "without" else 0)
    if n <= 60:
        assert (answer["cards"], answer["squares"]) == (n, 0), f"{where}: {answer['cards']} cards of {n} nodes"
    else:
        assert answer["squares"] == n and 60 <= answer["cards"] <= 90, f"{where}: {answer['squares']} squares of {n} nodes, {answer['cards']} cards"
    moves = case.moves()
    if not moves:
        assert answer["flow"] is None, f"{where}: arrows without moves"
        return
    flow = answer["flow"]
    assert flow["arrows"] == (len(moves) if len(moves) <= 30 else 100), f"{where}: {flow['arrows']} arrows of {len(moves)} moves"
    assert not flow["textOutside"] and flow["boxOutside"] == 0, f"{where}: {flow}"


def check_screenshots(case):
    sizes = []
    for is_dark in False, True:
        path = os.path.join(OUT, f"{case.name}-{'dark' if is_dark else 'light'}.png")
        with Served(case.folder) as served:
            browse(f"{served.url}/page.html", scheme(is_dark), f"--window-size={DESK},2400", f"--screenshot={path}")
        with open(path, "rb") as f:
            data = f.read()
        assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", data[16:24]) == (DESK, 2400), f"{path} is no picture of that size"
        sizes.append(data)
    assert sizes[0] != sizes[1], "light and dark are the same picture"


def shows_plans(folder):
    """every node, bar and arrow of a plan is visible, and as large as its figure says; nothing is too wide, cut off, or too pale"""
    for name in PLANS:
        case = Case(folder, name)
        for width, is_dark in ((DESK, False), (DESK, True), (PHONE, False)):
            check_layout(case, width, is_dark)
        check_screenshots(case)


def asks_for_nothing(folder):
    """a page that somebody has put a picture, a script and a style sheet into still asks for nothing, and the browser says so"""
    case = Case(folder, "small")
    planted = (b'<img src="beacon.png" alt=""/><script>window.beacon = 1</script><script src="beacon.js"></script>'
               b'<link rel="stylesheet" href="beacon.css"/></main>')
    case.write(case.page.replace(b"</main>", planted))
    answer, console, asked = case.measure(DESK, False)
    assert answer["scripts"] == 2 and not answer["ranScript"], answer
    assert sorted(asked) == ["/measure.html", "/page.html"], asked
    assert len(console) >= 3, console


def sees_what_is_wrong(folder):
    """pages with a bar of the wrong width, a line that is too wide, pale text, a hidden node and a lost arrow are seen to be wrong"""
    case = Case(folder, "small")
    for what, old, new in (("before, of", b"style=\"width:", b"style=\"max-width:1px;width:"),
                           ("pixels too wide", b"</main>", b"<p style=\"width:1300px\">x</p></main>"),
                           ("too pale", b".why{", b".why{color:#ccc!important;"),
                           ("not visible", b"</style>", b".node:first-child{display:none}</style>"),
                           ("arrows of", b"<g class=\"move\">", b"<g class=\"lost\">")):
        assert old in case.page, what
        case.write(case.page.replace(old, new, 1))
        try:
            check_layout(case, DESK, False)
        except AssertionError as e:
            assert what in str(e), f"{what} was expected: {e}"
        else:
            raise AssertionError(f"'{what}' was not seen")


def main():
    cases = (shows_plans, asks_for_nothing, sees_what_is_wrong)
    if not BROWSER:
        print(f"skipped page: there is no chromium\n0 passed, 0 failed, {len(cases)} skipped")
        return 0
    os.makedirs(OUT, exist_ok=True)
    failed = 0
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="vesper-page.") as folder:
            try:
                case(folder)
                print(f"ok      page: {case.__doc__}", flush=True)
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print(f"FAILED  page: {case.__doc__}")
                print("".join("        ! " + line + "\n" for line in traceback.format_exc().splitlines()[-12:]), end="", flush=True)
    print(f"Screenshots: {os.path.relpath(OUT)}\n{len(cases) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
