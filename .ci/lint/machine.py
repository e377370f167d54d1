#!/usr/bin/env python3
"""machine.py [PROJECT]: the loader's decisions are pure and stand once. Files of pipeline/loader/machine include nothing with
threads, clocks, atomics or I/O, and no other product file defines a constant of theirs. Prints file:line: rule: text."""

import re
import sys
from pathlib import Path

from sources import code_only, cpp_files, line_of

MACHINE = re.compile(r"^(include/drawpoint/)?pipeline/loader/machine/")
PRODUCT = re.compile(r"^(include|instrumentation|pipeline|loop|diagnosis|cli)/")
PURE = {"algorithm", "array", "bit", "cmath", "compare", "cstddef", "cstdint", "limits", "optional", "span", "string",
        "string_view", "type_traits", "utility", "vector"}
# The numbers that are decided about: plain values.
NUMBERS = {"drawpoint/instrumentation/ledger/loader_kind.hpp", "drawpoint/instrumentation/ledger/order_rule.hpp",
           "drawpoint/instrumentation/ledger/rows.hpp"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
IMPURE = re.compile(r"\b(std::(atomic|mutex|thread|chrono|condition_variable|jthread|ofstream|ifstream|cout)\w*|::read|::write)\b")
# A constant with a number for a value, alone or in a list: `constexpr std::int64_t spin_ns = 5'000, long_spin_ns = 80'000;`
DECLARATION = re.compile(r"\bconstexpr\s+(?:inline\s+|static\s+)*[\w:]+(?:\s*<[^;={}]*>)?\s+(\w+\s*=[^;{}()]*(?:\([^;{}]*\)[^;{}()]*)*);")
ENTRY = re.compile(r"(?:^|,)\s*([a-z]\w*_\w+)\s*=")   # of a telling name: `most` may stand anywhere


def constants(text):
    """(name, position) of each constant that the text defines."""
    code = code_only(text)
    for declaration in DECLARATION.finditer(code):
        for entry in ENTRY.finditer(declaration.group(1)):
            yield entry.group(1), declaration.start(1) + entry.start(1)


def check(files):
    """(path, line, rule, words) of each fault; files: (path, text) of the whole project."""
    files = [(str(path), text) for path, text in files if PRODUCT.match(str(path))]
    mine = {}
    faults = []
    for path, text in files:
        if not MACHINE.match(path):
            continue
        for found in INCLUDE.finditer(text):
            target = found.group(1)
            if target not in PURE | NUMBERS and not MACHINE.match(re.sub(r"^drawpoint/", "include/drawpoint/", target)):
                faults.append((path, line_of(text, found.start()), "machine-pure",
                               f"{target}: decisions know no threads, clocks, atomics or I/O"))
        code = code_only(text)
        faults += [(path, line_of(code, found.start()), "machine-pure", f"{found.group()} in a decision")
                   for found in IMPURE.finditer(code)]
        for name, at in constants(text):
            if name in mine and mine[name] != path:
                faults.append((path, line_of(text, at), "machine-once", f"{name} stands in {mine[name]} already"))
            mine.setdefault(name, path)
    for path, text in files:
        if MACHINE.match(path) or not path.startswith(("pipeline/", "diagnosis/", "include/drawpoint/pipeline/",
                                                       "include/drawpoint/diagnosis/", "cli/")):
            continue
        faults += [(path, line_of(text, at), "machine-once", f"{name} is a constant of {mine[name]}")
                   for name, at in constants(text) if name in mine]
    return faults


def main():
    found = check(cpp_files(sys.argv[1] if len(sys.argv) > 1 else "."))
    for path, line, rule, words in found:
        print(f"{path}:{line}: {rule}: {words}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
