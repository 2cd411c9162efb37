#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A room that has to be pure calls nothing that has a clock, chance, files, processes or sockets.

Usage: check-pure.py ARCHIVE...

What the objects of a static library leave undefined, and none of them defines, must stand in the list of what may be called. A list
of what is forbidden would miss the next name. Before that each of a few impure calls is compiled and has to be found.
"""
import os
import re
import subprocess
import sys
import tempfile

# Of the C library: memory, texts, sorting, arithmetic. All else comes from the rooms below, whose names begin so.
C_LIBRARY = set("""
__assert_fail __errno_location __stack_chk_fail __popcountdi2 abort
calloc free malloc realloc reallocarray
bcmp memchr memcmp memcpy memmem memmove mempcpy memset
bsearch qsort qsort_r
snprintf vsnprintf sscanf strtod strtol strtoll strtoul strtoull
stpcpy stpncpy strchr strchrnul strcmp strcpy strcspn strdup strlen strncmp strncpy strndup strnlen strpbrk strrchr strsep strspn strstr
regexec
""".split())
BELOW = re.compile(r"^(hashmap|intern|strv|strbuf|str_|utf8|json|protobuf|kube|key_values|object_meta|selector|condition|pod_claims|quantity|node_amount|pool|repair_rules|"
                   r"machine_id|list)_?\w*$")
TEXTS = {"strf", "compare_strings", "startswith", "endswith", "strstrip", "free_and_strdup", "greedy_realloc", "memdup", "memdup_str", "erase_and_free", "hex_encode",
         "hash64", "siphash24", "parse_int64", "parse_uint64", "parse_uint64_range", "parse_bool", "annotation_is_true", "rfc3339_parse",
         "rfc3339_format", "duration_parse", "duration_parse_go", "duration_format", "intern", "dns1123_subdomain_is_valid", "boot_id_equal",
         "label_value_is_valid"}
SANITIZERS = re.compile(r"^(__asan|__ubsan|__lsan|__sanitizer|__gcov|__llvm|_GLOBAL_OFFSET_TABLE_|__sancov|__start___sancov|__stop___sancov)")

IMPURE = {
    "time": "#include <time.h>\nlong f(void) { return time(0); }",
    "clock_gettime": "#include <time.h>\nint f(struct timespec *t) { return clock_gettime(CLOCK_MONOTONIC, t); }",
    "rand": "#include <stdlib.h>\nint f(void) { return rand(); }",
    "getrandom": "#include <sys/random.h>\nlong f(void *p) { return getrandom(p, 1, 0); }",
    "open": "#include <fcntl.h>\nint f(void) { return open(\"/\", O_RDONLY); }",
    "fopen": "#include <stdio.h>\nvoid *f(void) { return fopen(\"/\", \"r\"); }",
    "socket": "#include <sys/socket.h>\nint f(void) { return socket(1, 1, 0); }",
    "getenv": "#include <stdlib.h>\nchar *f(void) { return getenv(\"HOME\"); }",
    "read_full_file": "int read_full_file(void);\nint f(void) { return read_full_file(); }",
    "clock_now": "long clock_now(void *);\nlong f(void) { return clock_now(0); }",
}


def plain(name):
    """The call behind a name of fortified or versioned code."""
    name = name.split("@")[0]
    name = re.sub(r"^__isoc\d+_", "", name)
    return re.sub(r"^__(\w+)_chk$", r"\1", name) if name != "__stack_chk_fail" else name


def symbols(archive):
    undefined, defined = set(), set()
    text = subprocess.run(["nm", "--format=posix", archive], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        parts = line.split()
        if len(parts) < 2 or parts[0].endswith(":"):
            continue
        (undefined if parts[1] in "Uw" else defined).add(parts[0])
    return undefined, defined


def offences(archive):
    undefined, defined = symbols(archive)
    assert defined, f"{archive} defines nothing: this check has looked at the wrong file"
    return sorted(s for s in undefined - defined
                  if not (plain(s) in C_LIBRARY or s in TEXTS or BELOW.match(s) or SANITIZERS.match(s)))


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        for name, source in IMPURE.items():
            path = os.path.join(folder, "impure")
            with open(path + ".c", "w", encoding="utf-8") as f:
                f.write(source + "\n")
            subprocess.run([os.environ.get("CC", "cc"), "-O2", "-c", path + ".c", "-o", path + ".o"], check=True)
            found = offences(path + ".o")
            assert any(plain(s) == name for s in found), f"a call of {name}() went unnoticed: {found}"


def main():
    self_test()
    failed = False
    for archive in sys.argv[1:]:
        for s in offences(archive):
            print(f"{os.path.basename(archive)} calls {s}(), which is not among what a pure room may call", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
