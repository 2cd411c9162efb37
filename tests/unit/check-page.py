#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of `vesperctl plan -o html`: well-formed, with all that the JSON of the same plan has or a word on what is left out, whatever
names objects have, the same bytes each time, and small for 5,000 nodes. What a browser makes of them: suite page.

Usage: check-page.py SOURCE VESPERCTL
"""

import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET

SOURCE, CTL = sys.argv[1:3]
sys.path.insert(0, os.path.join(SOURCE, "tests", "page"))
import clusters  # noqa: E402

LIMIT = 100
X = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
SIZE_MAX = 2 * 1024 * 1024
VOID = {"meta", "link", "br"}


class Nesting(html.parser.HTMLParser):
    """Elements as a browser's parser of HTML sees them: each closed by its own end."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> ends {self.open[-3:]}"
        self.open.pop()


def text(element):
    return "".join(element.itertext())


def by_class(root, tag, name):
    return [e for e in root.iter(tag) if name in e.get("class", "").split()]


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="vesper-page.")
        cls.paths = {}
        for name, items in (("small", clusters.small()), ("hostile", clusters.hostile()), ("middle", clusters.large(150, 6)), ("expired", clusters.expired(210)), ("full", clusters.full()),
                            ("large", clusters.large(5000, 3))):
            cls.paths[name] = os.path.join(cls.folder.name, name)
            with open(cls.paths[name], "w", encoding="utf-8") as f:
                f.write(clusters.snapshot(items))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def plan(self, name, form, *words, status=0):
        done = subprocess.run([CTL, "plan", "--snapshot", self.paths[name], "-o", form, *words], capture_output=True, check=False, timeout=LIMIT)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def page(self, name, *words, status=0):
        """The page as a tree, read by a parser of XML; one of HTML sees the same elements."""
        data = self.plan(name, "html", *words, status=status)
        self.assertLess(len(data), SIZE_MAX)
        root = ET.fromstring(data)
        nesting = Nesting()
        nesting.feed(data.decode())
        nesting.close()
        self.assertEqual(nesting.open, [])
        self.assertEqual(nesting.seen, [e.tag.split("}")[1] for e in root.iter()])
        self.assertTrue({e.tag for e in root.iter()} <= {X + t for t in (
            "html head meta link title style body main h1 h2 h3 h4 p div span b i ul li small article table tr th td code details summary br "
            "footer").split()} | {SVG + t for t in "svg g path rect text title".split()})
        for e in root.iter():
            self.assertTrue(set(e.attrib) <= set("class style title lang charset name content http-equiv rel href viewBox role x y width height rx d".split()), e.attrib)
            self.assertIn(e.get("href", "data:,"), ("data:,",))
        self.assertNotRegex(text(root.find(f".//{X}style")), r"url\(|@import")
        return root

    def rows(self, root, heading):
        """Of the table with that first column's name: lists of texts."""
        for table in root.iter(X + "table"):
            rows = [[text(cell) for cell in row] for row in table.iter(X + "tr")]
            if rows[0][0] == heading:
                return rows[1:]
        return []

    def test_has_everything(self):
        root, plan = self.page("small"), json.loads(self.plan("small", "json"))
        going = {n["name"]: i + 1 for i, s in enumerate(plan["steps"]) for n in s["nodes"]}
        self.assertGreaterEqual(len(plan["steps"]), 3)
        cards = {text(c.find(X + "h4")): c for c in by_class(root, X + "article", "node")}
        self.assertEqual(set(cards), set(going) | {s["name"] for s in plan["staying"]})
        for name, card in cards.items():
            self.assertEqual("goes" in card.get("class"), name in going)
            self.assertEqual(len(by_class(card, X + "div", "use")), 2)
            if name in going:
                self.assertIn(f"Goes in step {going[name]}: {plan['steps'][going[name] - 1]['method']}", text(card))
        moves = [[m["pod"], m["from"], m["to"]] for s in plan["steps"] for m in s["moves"]]
        self.assertGreater(len(moves), 3)
        self.assertEqual(sorted(self.rows(root, "Pod")), sorted(moves))
        arrows = [text(g.find(SVG + "title")) for g in by_class(root, SVG + "g", "move")]
        self.assertEqual(sorted(arrows), sorted(f"{start} to {end}: {pod}" for pod, start, end in moves))
        self.check_reasons(root, plan)
        self.assertIn(f"8 \u2192 {8 - len(going)}", [text(b) for b in root.iter(X + "b")])

    def check_reasons(self, root, plan):
        """Of each code how many nodes have it, by the method that comes nearest."""
        wanted = {}
        for s in plan["staying"]:
            for code in {f["code"] for f in s["lacks"].get(s["nearest"], [])}:
                wanted[code] = wanted.get(code, 0) + 1
        found = {re.search(r"[A-Z]+(_[A-Z]+)*$", row[1]).group(): int(row[0]) for row in self.rows(root, "Nodes")}
        self.assertEqual(found, wanted)
        self.assertGreater(len(found), 2)

    def test_many_moves_share_arrows(self):
        root, plan = self.page("middle"), json.loads(self.plan("middle", "json"))
        moves = [(i, m["from"], m["to"]) for i, s in enumerate(plan["steps"]) for m in s["moves"]]
        self.assertGreater(len(moves), 60)
        arrows = by_class(root, SVG + "g", "move")
        self.assertEqual(len(arrows), min(len(set(moves)), 100))
        self.assertIn(f"There are {len(moves)} moves", text(root))
        if len(set(moves)) > 100:
            self.assertIn(f"{len(set(moves)) - 100} more pairs of nodes", text(root))
        self.assertEqual(len(self.rows(root, "Pod")), len(moves))
        self.check_reasons(root, plan)

    def test_many_nodes(self):
        root, plan = self.page("large"), json.loads(self.plan("large", "json"))
        steps = plan["steps"]
        squares = [t for t in by_class(root, X + "i", "tile") if t.get("title")]
        self.assertEqual(len(squares), 5000)
        self.assertEqual(sum("goes" in t.get("class").split() for t in squares), sum(len(s["nodes"]) for s in steps))
        self.assertLessEqual(len(by_class(root, X + "article", "node")), 90)
        n_moves = sum(len(s["moves"]) for s in steps)
        self.assertGreater(n_moves, 1000)
        self.assertEqual(len(self.rows(root, "Pod")), 1000)
        self.assertIn(f"{n_moves - 1000} more are in -o json.", text(root))
        self.assertRegex(text(root), r"\d+ more nodes that go, are new or take pods are on the map alone")
        self.check_reasons(root, plan)

    def test_many_steps(self):
        root = self.page("expired")
        self.assertEqual(text(root.find(f".//{X}h1")), "210 of 211 nodes would be removed now")
        self.assertEqual(len(self.rows(root, "Step")), 200)
        self.assertIn("10 more steps are in -o json.", text(root))
        self.assertEqual(len(by_class(root, SVG + "g", "move")), 100)
        self.assertNotIn("saved", text(root.find(f".//{X}main")))

    def test_nodes_that_are_not_there(self):
        """What is asked about with more nodes than there are: one that takes pods is shown as new."""
        root = self.page("full", "--with", "m5.large:2")
        self.assertEqual([text(c.find(X + "h4")) for c in by_class(root, X + "article", "new")], ["with-m5.large-1"])
        self.assertEqual(self.rows(root, "Pod"), [["shop/mail-1", "old", "with-m5.large-1"]])
        root = self.page("full")
        self.assertEqual([text(c.find(X + "h4")) for c in by_class(root, X + "article", "new")], ["new-1"])
        root = self.page("full", "--all-drainable", status=3)
        self.assertEqual(text(root.find(f".//{X}h1")), "No node of 2 could go now")

    def test_same_bytes(self):
        for name in "small", "middle":
            self.assertEqual(self.plan(name, "html"), self.plan(name, "html"))

    def test_hostile_names(self):
        """All of it is text: page() has looked that there is no element or attribute that is not ours."""
        shown = re.sub("[\u0001\u001b\u202e\ufffe]", "?", clusters.HOSTILE)
        root = self.page("hostile")
        names = [text(h) for h in root.iter(X + "h4")]
        self.assertEqual(len(names), 4)
        for name in names:
            self.assertTrue((name[0] + shown).startswith(name.rstrip("\u2026")), name)
        self.assertIn("NodePool web" + shown[:20], text(root))
        self.assertIn("pod shop/p3" + shown, text(root))
        self.assertIn("p1" + shown, text(by_class(root, SVG + "g", "move")[0]))
        root = self.page("hostile", "--without", "c" + clusters.HOSTILE, status=3)
        self.assertIn("Could not go now", text(root))
        self.page("hostile", "--all-drainable")

    def test_what_if(self):
        root = self.page("small", "--without", "ip-10-0-1-12,ip-10-0-1-13", "--with", "m5.large:2")
        self.assertEqual(text(root.find(f".//{X}h1")), "These 2 nodes could go together")
        self.assertEqual(len(by_class(root, X + "article", "goes")), 2)
        self.assertEqual(len(by_class(root, X + "article", "new")), 2)
        self.assertEqual(len(self.rows(root, "Pod")), 7)
        root = self.page("small", "--without", "ip-10-0-1-14", status=3)
        self.assertEqual(text(root.find(f".//{X}h1")), "This node could not go now")
        self.assertEqual([r[0] for r in self.rows(root, "Nodes")], ["1"])
        self.assertIn("pod shop/report-1 has opted out", text(root))
        root, plan = self.page("small", "--all-drainable"), json.loads(self.plan("small", "json", "--all-drainable"))
        self.assertEqual(len(by_class(root, X + "article", "goes")), len(plan["nodes"]))

    def test_refusals(self):
        for form, words, says in (("html", ("--upgrade", "web"), "-o html shows the plan, --without and --all-drainable; of --upgrade it is one of: table, json, yaml"),
                                  ("svg", (), "-o svg: of plan it is one of: table, json, yaml, html")):
            done = subprocess.run([CTL, "plan", "--snapshot", self.paths["small"], "-o", form, *words], capture_output=True, text=True, check=False, timeout=LIMIT)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
