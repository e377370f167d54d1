#!/usr/bin/env python3
"""parity.py [PROJECT]: docs/parity.md has one row for each behaviour of the original profilers, and every test it names is
one that ctest runs. Prints file:line: rule: text."""

import re
import sys
from pathlib import Path

ROWS = {"E": 23, "M": 19, "R": 20, "O": 24, "L": 34, "T": 24}
STATUS = re.compile(r"exact|corrected \(.+\)|later \(.+\)")
CELL = re.compile(r"(?<!\\)\|")
CASE = re.compile(r"\b(?:BOOST_\w*TEST_CASE(?:_TEMPLATE)?|DRAWPOINT_CORO_TEST_CASE)\s*\(\s*(\w+)")
SUITE = re.compile(r"\bBOOST_AUTO_TEST_SUITE\s*\(\s*(\w+)")


def tests_of(project):
    """All `suite/case`, and the names of tests that are whole programs."""
    names = set()
    for cmake in [*project.glob("tests/**/CMakeLists.txt"), *project.glob("examples/CMakeLists.txt")]:
        text = cmake.read_text()
        names |= {f"example_{name}" for name in re.findall(r"^\s*drawpoint_example\((\w+)", text, re.MULTILINE)}
        for source in re.findall(r"([\w./]+_test\.cpp)", text):
            code = (cmake.parent / source).read_text()
            for suite in SUITE.findall(code):
                names |= {f"{suite}/{case}" for case in CASE.findall(code)}
    return names


def check(text, tests):
    """(line, rule, message) of each fault."""
    faults, seen = [], {}
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in CELL.split(line)]
        if len(cells) < 3 or not re.fullmatch(r"[A-Z]\d+", cells[1]):
            continue
        row = cells[1]
        if int(row[1:]) not in range(1, ROWS.get(row[0], 0) + 1):
            faults.append((number, "parity-row", f"{row}: there is no such row"))
        if row in seen:
            faults.append((number, "parity-row", f"{row} again, after line {seen[row]}"))
        seen[row] = number
        if len(cells) != 6 or not cells[2]:
            faults.append((number, "parity-row", f"{row}: | row | API | tests | status |, {len(cells) - 2} cells found"))
            continue
        named = re.findall(r"`([^`]+)`", cells[3])
        if not named:
            faults.append((number, "parity-test", f"{row} names no test"))
        faults += [(number, "parity-test", f"{row}: there is no test {name}") for name in named if name not in tests]
        if not STATUS.fullmatch(cells[4]):
            faults.append((number, "parity-status", f"{row}: exact, corrected (why) or later (how it is refused), "
                                                    f"not '{cells[4]}'"))
    faults += [(1, "parity-row", f"{kind}{n} is missing") for kind, last in ROWS.items() for n in range(1, last + 1)
               if f"{kind}{n}" not in seen]
    return faults


def main():
    project = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    faults = check((project / "docs/parity.md").read_text(), tests_of(project))
    for line, rule, message in faults:
        print(f"docs/parity.md:{line}: {rule}: {message}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
