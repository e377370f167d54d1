#!/usr/bin/env python3
"""layout.py [PROJECT]: no line of a C++ source is longer than 120 columns, but inside raw strings; clang-format leaves long
comments and strings as they are. Prints file:line: rule: text."""

import re
import sys

from sources import LITERALS, main

COLUMNS = 120


def check(path, text):
    raw = set()   # lines that a raw string takes part in
    for found in LITERALS.finditer(text):
        if found.group().startswith("R"):
            first = text.count("\n", 0, found.start()) + 1
            raw.update(range(first, first + found.group().count("\n") + 1))
    return [(number, "layout", f"{len(line)} columns, of {COLUMNS} at most: wrap it")
            for number, line in enumerate(text.splitlines(), 1) if len(line) > COLUMNS and number not in raw]


if __name__ == "__main__":
    sys.exit(main(check))
