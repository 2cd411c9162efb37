#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a manual page: TEMPLATE, with the options that PROGRAM --help names in the place of a line that reads @OPTIONS@.

    options.py TEMPLATE [RUNNER] PROGRAM

RUNNER: the command that runs programs of another architecture, as qemu's.
"""
import re
import subprocess
import sys

# "  -o --output=table|json       Form of the output"; what goes on is indented further than the option.
OPTION = re.compile(r"^\s+((?:-\w\s+)?--[a-z-]+(?:[= ][^\s]+)?)(?:\s{2,}(\S.*))?$")


def escape(text):
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


def options(text):
    """[(option as shown, explanation)]"""
    found = []
    for line in text.splitlines():
        match = OPTION.match(line)
        if match:
            found.append([match.group(1), match.group(2) or ""])
        elif found and re.match(r"^\s{8,}\S", line):
            found[-1][1] = (found[-1][1] + " " + line.strip()).strip()
    return found


def main():
    template, *program = sys.argv[1:]
    text = subprocess.run([*program, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = options(text)
    wanted = set(re.findall(r"--[a-z][a-z-]+", "\n".join(line for line in text.splitlines() if line.startswith(" "))))
    lost = sorted(o for o in wanted if not any(o in shown or o in said for shown, said in found))
    if not found or lost:
        sys.exit(f"{sys.argv[0]}: cannot read what {' '.join(program)} --help says of {lost or 'its options'}")
    with open(template, encoding="utf-8") as f:
        lines = f.read().splitlines()
    place = lines.index("@OPTIONS@")
    page = []
    for shown, said in found:
        page += [".TP", ".B " + escape(shown).replace(" \\-\\-", ", \\-\\-"),
                 escape(said[:1].upper() + said[1:]).rstrip(".") + "."]
    print("\n".join(lines[:place] + page + lines[place + 1:]))


if __name__ == "__main__":
    main()
