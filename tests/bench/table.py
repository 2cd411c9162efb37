# SPDX-License-Identifier: Apache-2.0
"""How figures are shown: tables for people, one JSON line per benchmark for machines, bars with their verdict."""

import json
import math


def table(title, header, rows):
    """Text. Numbers stand to the right, words to the left; None is shown as "-"."""
    cells = [[_cell(value) for value in row] for row in rows]
    assert all(len(row) == len(header) for row in cells), f"a row of '{title}' is not as wide as its header"
    widths = [max(len(c) for c in column) for column in zip(*([list(header)] + cells))]
    right = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(header))]
    lines = [title] if title else []
    for row in [list(header)] + cells:
        fields = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right)]
        lines.append("    " + "  ".join(fields).rstrip())
    return "\n".join(lines)


def json_line(name, figures):
    """{"bench": NAME, ...} on one line; floats with what they are worth."""
    return json.dumps({"bench": name, **_rounded(figures)}, separators=(", ", ": "), ensure_ascii=False)


def bar(what, value, limit, unit):
    """(held, text): what was measured beside what it may be at most. `limit` is the most that is allowed."""
    held = value is not None and value <= limit
    part = f", {value / limit:.2f} of it" if held and limit > 0 else ""
    return held, f"{'held  ' if held else 'MISSED'}  {what}: {_cell(value)} {unit}, bar {_cell(limit)} {unit}{part}"


def number(value):
    """Three digits that count: 0.0123, 1.23, 12.3, 1,234."""
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(digits, 6)}f}"


def _is_number(value):
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _cell(value):
    if value is None:
        return "-"
    return number(value) if _is_number(value) else str(value)


def _rounded(value):
    if isinstance(value, dict):
        return {key: _rounded(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(v) for v in value]
    return float(f"{value:.5g}") if isinstance(value, float) and math.isfinite(value) else value
