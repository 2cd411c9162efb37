# SPDX-License-Identifier: Apache-2.0
"""Finds the places of a C file at which mutate.py can plant a mistake, by libclang.

A place is spelled in the function bodies of the file itself. Left out are
- macro calls and their arguments (assert() and log_*() are macros),
- calls that log, and conditions that only guard them,
- functions that only report to the tests what wakes a thing (shared/loop/wakeup.h): like an assert, a report that is wrong is a
  wrong test,
- calls that free, or give back a reference: only sanitizers find a leak, and mutate.py runs a plain build,
- arguments of which the order does not matter: streq(a, b), memcmp(a, b, n) == 0,
- mistakes that a compiler warns about: a variable that is unset, a comparison that is always true or always false.
"""

import bisect
import os
import re
import sys

try:
    import clang.cindex as cindex
except ImportError:
    sys.path.append("/usr/lib/python3/dist-packages")  # Debian's python3-clang, if another python3 comes first in PATH
    import clang.cindex as cindex

K = cindex.CursorKind
KINDS = {
    "delete": "a statement is deleted",
    "keep": "an assignment is deleted: the variable keeps its value",
    "compare": "a comparison is moved by one",
    "negate": "the condition of if, while or ?: is negated",
    "operand": "one operand of && or || is negated",
    "exchange": "two arguments of one type are exchanged",
}
MOVED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
FREES = re.compile(r"(^|_)m?(free|freep|free_many|free_all|done|deinit)$|"
                   r"^(erase_text|va_end|MHD_destroy_response|curl_\w+_cleanup)$|^posix_spawn\w+_destroy$|^(intern|kube_object|http_tls)_unref$")
LOGS = re.compile(r"^(log_|sd_event_source_set_description$)")  # sd-event logs descriptions
CHECKS = re.compile(r"(^wakeups_|_next_wakeup$)")
LOG_LEVEL = re.compile(r"^LOG_LEVEL_")  # the first or second argument of a function that logs
SYMMETRIC = re.compile(r"^(str(case)?eq(_ptr)?|boot_id_(equal|differs)|usec_add|calloc)$")
COMPARES = re.compile(r"^(mem|str(n|case|ncase)?)cmp$")
EQUALS = re.compile(rb"\s*[=!]= 0\b")  # behind a call that compares
UNSIGNED = {cindex.TypeKind.BOOL, cindex.TypeKind.UCHAR, cindex.TypeKind.USHORT, cindex.TypeKind.UINT, cindex.TypeKind.ULONG,
            cindex.TypeKind.ULONGLONG}
COMMENT = re.compile(rb"/\*.*?\*/|//[^\n]*", re.DOTALL)


class Place:
    """One mistake that can be planted: `guarded` and `plain` are its texts, as lists of strings and of ranges of the source.
    `guarded` is the place with a switch: MUTANT(%d) is true while the mistake of this number is on. `plain` is the mistake alone."""

    def __init__(self, file, source, kind, start, end, what, guarded, plain):
        self.file, self.kind, self.start, self.end, self.guarded, self.plain = file, kind, start, end, guarded, plain
        begin = source.rfind(b"\n", 0, start) + 1
        self.line, self.column = source.count(b"\n", 0, start) + 1, start - begin + 1
        self.last_line = self.line + source.count(b"\n", start, end)
        self.text = source[begin:(source + b"\n").index(b"\n", start)].decode().strip()  # the first line of the place
        self.what = " ".join(what.split())

    def id(self):
        return f"{self.file}:{self.line}:{self.column}:{self.kind}"

    def folder(self):
        return os.path.dirname(self.file)

    def file_name(self):
        return self.id().replace("/", "-").replace(":", "-")

    def order(self):
        return self.start, -self.end, 0 if self.kind in ("negate", "operand") else 1

    def overlaps(self, other):
        """Returns true if neither place contains the other, and they share text."""
        a, b = sorted([(self.start, self.end), (other.start, other.end)], key=lambda r: (r[0], -r[1]))
        return b[0] < a[1] < b[1]

    def mistake(self, source):
        """Returns the file's text with this mistake alone."""
        parts = [p.encode() if isinstance(p, str) else source[p[0]:p[1]] for p in self.plain]
        return source[:self.start] + b"".join(parts) + source[self.end:]


class Finder:
    """The places of one file. `file` is its name, `source` its bytes, `arguments` those of its compiler."""

    def __init__(self, file, source, path, arguments):
        self.file, self.source, self.places = file, source, {}
        unit = cindex.Index.create().parse(path, args=arguments, options=cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        errors = [d for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
        if errors:
            raise ValueError(f"{file}: libclang cannot read it: {errors[0].spelling}")
        functions, macros = [], []
        for c in unit.cursor.get_children():
            if not c.location.file or c.location.file.name != path:
                continue
            if c.kind == K.MACRO_INSTANTIATION:
                macros.append((*self.range(c), c.spelling))
            elif c.kind == K.FUNCTION_DECL and c.is_definition() and not CHECKS.search(c.spelling):
                functions.append(c)
        self.macros = []  # the outermost macro calls: start, end, name
        for start, end, name in sorted(macros, key=lambda m: (m[0], -m[1])):
            if not self.macros or start >= self.macros[-1][1]:
                self.macros.append((start, end, name))
        for f in functions:
            self.unset = self.unset_locals(f)
            for c in f.get_children():
                if c.kind == K.COMPOUND_STMT:
                    self.visit(c, True, set())

    def range(self, cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def get_text(self, piece):
        return self.source[piece[0]:piece[1]].decode()

    def macro(self, start, end):
        """Returns the macro call that contains the range, or None."""
        i = bisect.bisect_right(self.macros, (start, 1 << 60)) - 1
        return self.macros[i] if i >= 0 and end <= self.macros[i][1] else None

    def add(self, kind, start, end, what, guarded, plain):
        if start < end and not self.macro(start, end):
            place = Place(self.file, self.source, kind, start, end, what, guarded, plain)
            self.places.setdefault((kind, start, end), place)

    def unset_locals(self, function):
        """Returns the local variables without a first value, by the offsets of their declarations."""
        return {c.location.offset for c in function.walk_preorder()
                if c.kind == K.VAR_DECL and "=" not in self.get_text(self.range(c))}

    def uses(self, cursor):
        """Returns the variables of self.unset that an expression or a declaration uses."""
        if not self.unset:
            return set()
        used = {c.referenced.location.offset for c in cursor.walk_preorder() if c.kind == K.DECL_REF_EXPR and c.referenced}
        return used & self.unset

    # -- expressions ------------------------------------------------------------------------------------

    def bare(self, cursor):
        """Returns the expression inside of parentheses and implicit casts."""
        while cursor.kind in (K.PAREN_EXPR, K.UNEXPOSED_EXPR):
            inner = list(cursor.get_children())
            if len(inner) != 1:
                break
            cursor = inner[0]
        return cursor

    def operator(self, cursor):
        """Returns (operator, its range, left, right) of a binary operator, or None."""
        if cursor.kind not in (K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR):
            return None
        sides = list(cursor.get_children())
        if len(sides) != 2:
            return None
        at = sides[0].extent.end.offset, sides[1].extent.start.offset
        return COMMENT.sub(b"", self.source[at[0]:at[1]]).strip().decode(), at, sides[0], sides[1]

    def add_negated(self, kind, cursor):
        start, end = self.range(cursor)
        self.add(kind, start, end, f"negated: {self.get_text((start, end))}",
                 ["(MUTANT(%d) != !!(", (start, end), "))"], ["!(", (start, end), ")"])

    def add_condition(self, cursor):
        if "log_enabled" not in self.get_text(self.range(cursor)):
            self.add_negated("negate", cursor)

    def add_operands(self, cursor):
        for side in self.operator(cursor)[2:]:
            found = self.operator(self.bare(side))
            if not found or found[0] not in ("&&", "||"):
                self.add_negated("operand", side)

    def add_comparison(self, cursor):
        op, at, first, second = self.operator(cursor)
        start, end = self.range(cursor)
        if self.get_text(self.range(second)) == "0" and self.bare(first).type.get_canonical().kind in UNSIGNED:
            return
        left, right = (start, at[0]), (at[1], end)
        moved = self.get_text(at).replace(op, MOVED[op])
        self.add("compare", start, end, f"{op} is {MOVED[op]}: {self.get_text((start, end))}",
                 ["(MUTANT(%d) ? ", left, moved, right, " : ", left, self.get_text(at), right, ")"], [left, moved, right])

    def add_exchanges(self, call):
        """Adds each argument with the next one of its type. A format stays where it is."""
        if SYMMETRIC.match(call.spelling or "") or (COMPARES.match(call.spelling or "") and
                                                    EQUALS.match(self.source, self.range(call)[1])):
            return
        arguments, last = list(call.get_arguments()), {}
        function = call.referenced
        variadic = function is not None and function.type.kind == cindex.TypeKind.FUNCTIONPROTO and function.type.is_function_variadic()
        fixed = len(list(function.type.argument_types())) if variadic else 0
        for i, argument in enumerate(arguments):
            kind = re.sub(r"\b(const|volatile) *", "", argument.type.get_canonical().spelling), i < fixed
            a, b = last.get(kind), self.range(argument)
            last[kind] = b
            if a is None or self.get_text(a) == self.get_text(b) or (variadic and i < fixed):
                continue
            if a[1] > b[0] or self.macro(a[0], b[1]):
                continue
            first, second = ["(MUTANT(%d) ? (", b, ") : (", a, "))"], ["(MUTANT(%d) ? (", a, ") : (", b, "))"]
            self.add("exchange", a[0], b[1], f"exchanged: {self.get_text(a)}, {self.get_text(b)}",
                     first + [(a[1], b[0])] + second, [b, (a[1], b[0]), a])

    # -- statements -------------------------------------------------------------------------------------

    def logs(self, call):
        arguments = list(call.get_arguments())[:2]
        return bool(LOGS.match(call.spelling or "")) or any(LOG_LEVEL.match(self.get_text(self.range(a))) for a in arguments)

    def only_logs(self, statement):
        if statement.kind == K.COMPOUND_STMT:
            inner = list(statement.get_children())
            return bool(inner) and all(self.only_logs(c) for c in inner)
        found = self.macro(*self.range(statement))
        return bool(LOGS.match(found[2])) if found else statement.kind == K.CALL_EXPR and self.logs(statement)

    def frees(self, cursor):
        cursor = self.bare(cursor)
        return cursor.kind == K.CALL_EXPR and bool(FREES.search(cursor.spelling or ""))

    def add_statement(self, cursor, assigned):
        start, end = self.range(cursor)
        semicolon = re.compile(rb"\s*;").match(self.source, end)
        inner = self.bare(cursor)
        if inner.kind == K.CSTYLE_CAST_EXPR:
            inner = self.bare(list(inner.get_children())[-1])
        if not semicolon or self.frees(inner) or (inner.kind == K.CALL_EXPR and self.logs(inner)):
            return
        found = self.operator(inner)
        if inner.kind == K.COMPOUND_ASSIGNMENT_OPERATOR or (found and found[0] == "="):
            left, right = found[2:]
            if self.frees(right) or (left.kind == K.DECL_REF_EXPR and not self.uses(left) <= assigned):
                return
            kind = "keep"
        elif inner.kind in (K.CALL_EXPR, K.UNARY_OPERATOR):
            kind = "delete"
        else:
            return
        end = semicolon.end()
        self.add(kind, start, end, f"deleted: {self.get_text((start, end))}",
                 ["{ if (!MUTANT(%d)) { ", (start, end), " } }"], [";"])

    def visit_block(self, statements, assigned):
        """Visits the statements of a block. A statement before another one of the same block assigns what it uses, but not in
        another case of a switch, and not if it stands behind a condition."""
        before = set(assigned)
        for c in statements:
            if c.kind in (K.CASE_STMT, K.DEFAULT_STMT):
                assigned = set(before)
            self.visit(c, True, assigned)
            if c.kind.is_expression() or c.kind == K.DECL_STMT:
                assigned = assigned | self.uses(c)
            elif c.kind in (K.IF_STMT, K.SWITCH_STMT, K.WHILE_STMT):
                assigned = assigned | self.uses(next(c.get_children()))

    def visit(self, cursor, in_statement, assigned):
        """assigned: the variables of self.unset that have a value for certain."""
        kind, inner = cursor.kind, list(cursor.get_children())
        if kind in (K.CXX_UNARY_EXPR, K.StmtExpr) or (kind == K.CALL_EXPR and self.logs(cursor)):
            return
        if kind == K.VAR_DECL and cursor.storage_class == cindex.StorageClass.STATIC:
            return
        if in_statement and kind.is_expression():
            self.add_statement(cursor, assigned)
        if kind == K.COMPOUND_STMT:
            return self.visit_block(inner, assigned)
        found = self.operator(cursor)
        if found and found[0] in ("&&", "||"):
            self.add_operands(cursor)
        elif found and found[0] in MOVED:
            self.add_comparison(cursor)
        elif kind == K.CALL_EXPR:
            self.add_exchanges(cursor)
        # The children in the position of a statement. All others are expressions.
        statements = {K.IF_STMT: inner[1:], K.DO_STMT: inner[:1], K.CASE_STMT: inner[-1:], K.DEFAULT_STMT: inner,
                      K.LABEL_STMT: inner, K.FOR_STMT: inner[-1:], K.WHILE_STMT: inner[-1:], K.SWITCH_STMT: inner[-1:]}.get(kind, [])
        if kind == K.IF_STMT and len(inner) == 2 and self.only_logs(inner[1]):
            return
        if kind in (K.IF_STMT, K.WHILE_STMT, K.CONDITIONAL_OPERATOR):
            self.add_condition(inner[0])
            if kind == K.IF_STMT:
                assigned = assigned | self.uses(inner[0])
        elif kind == K.DO_STMT:
            self.add_condition(inner[-1])
        for c in inner[1:] if kind == K.CASE_STMT else inner:
            self.visit(c, c in statements, assigned)


def find(file, source, path, arguments):
    """Returns the places of a file, in the order of its text. path: as the compiler knows it, from the current folder."""
    return sorted(Finder(file, source, path, arguments).places.values(), key=Place.order)


def guard(source, numbered):
    """Returns the source with a switch at each place. numbered: (number, place), none of which overlap."""
    def render(low, high, inner):
        out, at, i = [], low, 0
        while i < len(inner):
            number, place = inner[i]
            last = i + 1
            while last < len(inner) and inner[last][1].start < place.end:
                last += 1
            nested = inner[i + 1:last]
            out.append(source[at:place.start])
            for part in place.guarded:
                if isinstance(part, str):
                    out.append(part.replace("%d", str(number)).encode())
                else:
                    a, b = part
                    out.append(render(a, b, [n for n in nested if a <= n[1].start and n[1].end <= b]))
            at, i = place.end, last
        return b"".join(out) + source[at:high]
    return b'#include "mutant.h"\n#line 1\n' + render(0, len(source), sorted(numbered, key=lambda n: n[1].order()))
