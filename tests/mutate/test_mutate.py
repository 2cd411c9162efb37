#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which mistakes places.py finds in a small C file and which places it leaves alone, and the texts with and
without a switch. Each row of equivalent.txt has to name a line of the tree, and a reason."""

import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

try:
    import places
    places.cindex.Index.create()
except Exception as e:
    print(f"skipped: no python3-clang: {e}")
    sys.exit(77)

HEAD = """#include <stddef.h>
#define assert(x) ((void) ((x) || (broken(), 0)))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define log_info(...) log_full(__VA_ARGS__)
enum { LOG_LEVEL_INFO }; int say(int, int, const char *, const char *); int usec_add(int, int);
typedef struct Pod { int grace, left; const char *name; struct Pod *next; } Pod;
void broken(void); int log_full(const char *, ...); int log_enabled(void); void *mfree(void *); Pod *pod_free(Pod *);
int ask(int, int); int name(const char *, int, const char *);
int print(const char *, const char *, ...); int streq(const char *, const char *);
int memcmp(const void *, const void *, size_t); void MHD_destroy_response(Pod *); Pod *kube_object_unref(Pod *);
void *sd_event_source_unref(void *); int sd_event_source_set_description(void *, const char *);
int play(Pod *p, Pod *q, int n, int m) {
"""

# Body of the function; the mistakes that it has: kind, the text with a switch, the text of the mistake alone.
FOUND = [
    ("ask(n, 1);", [
        ("delete", "{ if (!MUTANT(7)) { ask(n, 1); } }", ";"),
        ("exchange", "ask((MUTANT(7) ? (1) : (n)), (MUTANT(7) ? (n) : (1)));", "ask(1, n);")]),
    ("(void) broken();", [("delete", "{ if (!MUTANT(7)) { (void) broken(); } }", ";")]),
    ("n++;", [("delete", "{ if (!MUTANT(7)) { n++; } }", ";")]),
    ("p->left |= q->left;", [("keep", "{ if (!MUTANT(7)) { p->left |= q->left; } }", ";")]),
    ("p->left = MAX(n, 1);", [("keep", "{ if (!MUTANT(7)) { p->left = MAX(n, 1); } }", ";")]),
    ("if (n) m = 1; else broken();", [
        ("negate", "if ((MUTANT(7) != !!(n))) m = 1; else broken();", "if (!(n)) m = 1; else broken();"),
        ("keep", "if (n) { if (!MUTANT(7)) { m = 1; } } else broken();", "if (n) ; else broken();"),
        ("delete", "if (n) m = 1; else { if (!MUTANT(7)) { broken(); } }", "if (n) m = 1; else ;")]),
    ("return n <= m;", [("compare", "return (MUTANT(7) ? n < m : n <= m);", "return n < m;")]),
    ("return p->grace > m;", [("compare", "return (MUTANT(7) ? p->grace >= m : p->grace > m);", "return p->grace >= m;")]),
    ("for (size_t i = 0; i < 3; i++) broken();", [
        ("compare", "for (size_t i = 0; (MUTANT(7) ? i <= 3 : i < 3); i++) broken();", "for (size_t i = 0; i <= 3; i++) broken();"),
        ("delete", "for (size_t i = 0; i < 3; i++) { if (!MUTANT(7)) { broken(); } }", "for (size_t i = 0; i < 3; i++) ;")]),
    ("return n ? 1 : m;", [("negate", "return (MUTANT(7) != !!(n)) ? 1 : m;", "return !(n) ? 1 : m;")]),
    ("do broken(); while (n);", [
        ("delete", "do { if (!MUTANT(7)) { broken(); } } while (n);", "do ; while (n);"),
        ("negate", "do broken(); while ((MUTANT(7) != !!(n)));", "do broken(); while (!(n));")]),
    ("return p && (n || m);", [
        ("operand", "return (MUTANT(7) != !!(p)) && (n || m);", "return !(p) && (n || m);"),
        ("operand", "return p && ((MUTANT(7) != !!(n)) || m);", "return p && (!(n) || m);"),
        ("operand", "return p && (n || (MUTANT(7) != !!(m)));", "return p && (n || !(m));")]),
    ("switch (n) { case 1: m = 2; }", [
        ("keep", "switch (n) { case 1: { if (!MUTANT(7)) { m = 2; } } }", "switch (n) { case 1: ; }")]),
    # Two arguments of one type stand apart. A format is never exchanged.
    ("return name(p->name, n, q->name);", [
        ("exchange", "return name((MUTANT(7) ? (q->name) : (p->name)), n, (MUTANT(7) ? (p->name) : (q->name)));",
         "return name(q->name, n, p->name);")]),
    ('return print("", "%s%s", p->name, q->name);', [
        ("exchange", 'return print("", "%s%s", (MUTANT(7) ? (q->name) : (p->name)), (MUTANT(7) ? (p->name) : (q->name)));',
         'return print("", "%s%s", q->name, p->name);')]),
    # The order of what is sorted matters, and so does the end of a source of events.
    ("return memcmp(p->name, q->name, 4);", [
        ("exchange", "return memcmp((MUTANT(7) ? (q->name) : (p->name)), (MUTANT(7) ? (p->name) : (q->name)), 4);",
         "return memcmp(q->name, p->name, 4);")]),
    ("sd_event_source_unref(p);", [("delete", "{ if (!MUTANT(7)) { sd_event_source_unref(p); } }", ";")]),
    # Without its first assignment a variable is unset. The second one may get lost.
    ("int r; r = 1; r = 2; return r;", [("keep", "int r; r = 1; { if (!MUTANT(7)) { r = 2; } } return r;", "int r; r = 1; ; return r;")]),
]

LEFT_ALONE = [
    "assert(n < m && m);",
    'log_info("%d", n < m);',
    'if (n < m && m) log_info("more");',
    'if (n < m) { log_info("more"); log_full("again"); }',
    'log_full("%d", n && m);',
    '(void) log_full("");',
    "return MAX(n < m, 1);",
    "pod_free(p);",
    "p = pod_free(p);",
    "(void) mfree(p);",
    "MHD_destroy_response(p);",
    "p = kube_object_unref(p);",
    "return streq(p->name, q->name);",
    "return memcmp(p->name, q->name, 4) == 0;",
    "int r; switch (n) { case 1: r = 1; break; default: r = 2; } return r;",
    "static const int odd = 1 < 2; return odd;",
    "return (int) sizeof(n < m);",
    "say(1, LOG_LEVEL_INFO, p->name, q->name);",
    "return usec_add(1, n);",
    '(void) sd_event_source_set_description(p, "pods");',
    "size_t count = 1; return count > 0;",
]


# A whole function, behind an empty one.
CHECK = "} void play_next_wakeup(int n) { if (n) broken();"


class PlacesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "play.c")

    def find(self, body):
        source = (HEAD + body + "\n}\n").encode()
        with open(self.path, "wb") as f:
            f.write(source)
        return source, places.find("play.c", source, self.path, ["-std=gnu17"])

    def body(self, source):
        return source.decode().split(HEAD)[1].removesuffix("\n}\n")

    def test_checks(self):
        self.assertEqual(self.find(CHECK)[1], [])
        self.assertNotEqual(self.find(CHECK.replace("play_next_wakeup", "play_next"))[1], [])

    def test_found(self):
        for body, expected in FOUND:
            source, found = self.find(body)
            texts = [(p.kind, self.body(places.guard(source, [(7, p)])), self.body(p.mistake(source))) for p in found]
            with self.subTest(body):
                self.assertCountEqual(texts, expected)
                self.assertEqual(len({p.id() for p in found}), len(found))

    def test_left_alone(self):
        for body in LEFT_ALONE:
            with self.subTest(body):
                self.assertEqual([p.id() for p in self.find(body)[1]], [])

    def test_nested(self):
        source, found = self.find("if (p && ask(n, m) < 0)\n        m = ask(m, 1);")
        texts = self.body(places.guard(source, list(enumerate(found, 1))))
        self.assertEqual([p.kind for p in found], ["negate", "operand", "operand", "compare", "exchange", "keep", "exchange"])
        swapped = "(MUTANT(%d) ? (%s) : (%s)), (MUTANT(%d) ? (%s) : (%s))"
        ask, again = "ask(" + swapped % (5, "m", "n", 5, "n", "m") + ")", "ask(" + swapped % (7, "1", "m", 7, "m", "1") + ")"
        self.assertEqual(texts, "if ((MUTANT(1) != !!((MUTANT(2) != !!(p)) && (MUTANT(3) != !!((MUTANT(4) ? "
                         f"{ask} <= 0 : {ask} < 0))))))\n        " "{ if (!MUTANT(6)) { m = " + again + "; } }")

    def test_overlap(self):
        _, found = self.find("return name(p->name, n, q->name) + ask(n, ask(m, 1)) + print(p->name, q->name, p->name, q->name, p->name);")
        outer, inner, first, second = [p for p in found if p.kind == "exchange"][-4:]
        self.assertFalse(outer.overlaps(inner))
        self.assertTrue(first.overlaps(second))
        self.assertTrue(second.overlaps(first))

    def test_equivalents(self):
        with open(os.path.join(HERE, "equivalent.txt"), encoding="utf-8") as f:
            rows = [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]
        for row in rows:
            with self.subTest(row):
                self.assertEqual(len(row), 4)
                file, line, _, reason = row
                self.assertTrue(reason)
                with open(os.path.join(TOP, file), encoding="utf-8") as f:
                    self.assertIn(line, [text.strip() for text in f])


if __name__ == "__main__":
    unittest.main()
