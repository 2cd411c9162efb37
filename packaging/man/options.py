#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a manual page: TEMPLATE, with the options that PROGRAM --help names in the place of a line that reads @OPTIONS@,
and what PROGRAM COMMAND --help says of each of its commands in the place of one that reads @COMMANDS@.

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


def said_of(program, *command):
    return subprocess.run([*program, *command, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout


def read_options(program, *command):
    """Those of its help, all of them, or the end."""
    text = said_of(program, *command).partition("\nOptions:\n")[2]
    found = options(text)
    wanted = set(re.findall(r"^\s+(?:-\w )?(--[a-z][a-z-]+)", text, re.M))
    lost = sorted(o for o in wanted if not any(o in shown for shown, _ in found))
    if not found or lost:
        sys.exit(f"{sys.argv[0]}: cannot read what {' '.join(program)} --help says of {lost or 'its options'}")
    return found


def option_lines(found):
    page = []
    for shown, said in found:
        page += [".TP", ".B " + escape(shown).replace(" \\-\\-", ", \\-\\-"),
                 escape(said[:1].upper() + said[1:]).rstrip(".") + "."]
    return page


def command_lines(program, common):
    """A part for each command: what it is for, its own options, its example."""
    page = []
    listed = said_of(program).partition("\nCommands:\n")[2].partition("\n\n")[0]
    for name in re.findall(r"^  ([a-z-]+) ", listed, re.M):
        head, _, body = said_of(program, name).partition("\n\n")
        body = body.partition("\n\nOptions:\n")[0]
        text, _, rest = body.partition("\n\nExample:\n")
        example, _, statuses = rest.partition("\n\nExit status:\n")
        page += [".SS " + escape(head.replace(" [OPTIONS...]", " [OPTION]...").partition(" ")[2])]
        for paragraph in text.split("\n\n"):
            page += [escape(" ".join(paragraph.split())), ".PP"]
        page += option_lines([o for o in read_options(program, name) if o not in common])
        special = " ".join(statuses.split()).partition("not valid")[2].lstrip("; ")
        if special.rstrip("."):
            page += [".PP", "Exit status besides: " + escape(special)]
        page += [".PP", ".nf", escape(example.strip()), ".fi"]
    return page


def main():
    template, *program = sys.argv[1:]
    common = read_options(program)
    with open(template, encoding="utf-8") as f:
        lines = f.read().splitlines()
    page = []
    for line in lines:
        if line == "@OPTIONS@":
            page += option_lines(common)
        elif line == "@COMMANDS@":
            page += command_lines(program, common)
        else:
            page.append(line)
    print("\n".join(page))


if __name__ == "__main__":
    main()
