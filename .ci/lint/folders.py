#!/usr/bin/env python3
"""folders.py [PROJECT]: no two folders of the product include each other, directly or around a corner: arrows between folders
run one way. A header of include/drawpoint/ counts as one of its folder, detail/ as the folder it lies in. At the top of the
repository there is nothing but what TOP names. Prints file:line: rule: text."""

import re
import subprocess
import sys
from collections import defaultdict

from sources import cpp_files, line_of

ROOMS = ("instrumentation", "pipeline", "loop", "diagnosis", "bench/experiment", "bench/suite", "cli", "python")
TOP = {".ci", ".clang-format", ".editorconfig", ".gitignore", "CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json",
       "CONTRIBUTING.md", "LICENSE", "README.md", "bench", "cli", "cmake", "diagnosis", "docs", "examples", "include",
       "instrumentation", "loop", "pipeline", "pyproject.toml", "python", "run", "tests"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


def folder_of(path):
    """pipeline/loader for include/drawpoint/pipeline/loader/detail/x.hpp; empty: not in a room's folder."""
    path = re.sub(r"^(include/)?drawpoint/", "", path)
    folder = path.rpartition("/")[0].removesuffix("/detail")
    return folder if any(f"{folder}/".startswith(f"{room}/") for room in ROOMS) else ""


def arrows_of(files):
    """{(folder, folder): (path, line, target) of one include that makes the arrow}"""
    arrows = {}
    for path, text in files:
        here = folder_of(str(path))
        for found in INCLUDE.finditer(text) if here else ():
            there = folder_of(found.group(1))
            if there and there != here:
                arrows.setdefault((here, there), (path, line_of(text, found.start(1)), found.group(1)))
    return arrows


def check(files):
    """(path, line, text) of an include for each arrow whose end leads back to its start."""
    arrows = arrows_of(files)
    ahead = defaultdict(set)
    for here, there in arrows:
        ahead[here].add(there)
    findings = []
    for (here, there), (path, line, target) in sorted(arrows.items()):
        reached, waiting = set(), [there]
        while waiting:
            folder = waiting.pop()
            if folder not in reached:
                reached.add(folder)
                waiting += ahead[folder]
        if here in reached:
            findings.append((path, line, f"{target}: {there} includes {here}, too, itself or through others"))
    return findings


def strays(tracked):
    """(name, 1, text) of each entry at the top that is not in TOP. `tracked`: paths of all files under version control."""
    return [(name, 1, "nobody knows this entry at the top: if it belongs here, name it in .ci/lint/folders.py")
            for name in sorted({path.partition("/")[0] for path in tracked} - TOP)]


def main():
    project = sys.argv[1] if len(sys.argv) > 1 else "."
    listed = subprocess.run(["git", "-C", project, "ls-files", "-z"], capture_output=True, text=True)
    found = check(list(cpp_files(project))) + strays(filter(None, listed.stdout.split("\0")))
    for path, line, words in found:
        print(f"{path}:{line}: folders: {words}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
