#!/usr/bin/env python3
"""include_graph.py [PROJECT]: who may include whom. Rooms depend one way: instrumentation <- pipeline <- loop <-
diagnosis <- cli; each heavy library stays in the place that needs it. Prints file:line: rule: text."""

import posixpath
import re
import sys
from fnmatch import fnmatch

from sources import main

# What the files that match the first pattern may include of the project. Paths are below include/drawpoint or the root,
# without extension. The first match decides; a room may always include itself.
ROOMS = [
    ("instrumentation/*", []),
    ("pipeline/torch/*", ["pipeline/*", "instrumentation/*"]),
    # The pipeline feeds instrumentation and never reads it: names of facts, but no reports, no statistics, no files.
    ("pipeline/*", ["instrumentation/clock", "instrumentation/event", "instrumentation/facts", "instrumentation/recorder/*",
                    "instrumentation/ledger/ledger", "instrumentation/host/*", "instrumentation/replaced_file"]),
    # A learner of LibTorch takes the loader's own batches, so it may know them.
    ("loop/torch/*", ["instrumentation/*", "pipeline/torch/*", "pipeline/loader/batch_slots", "pipeline/loader/runtime",
                      "pipeline/loader/batch_source", "pipeline/errors", "pipeline/rng"]),
    ("loop/*", ["instrumentation/*", "pipeline/loader/runtime", "pipeline/loader/batch_source", "pipeline/errors", "pipeline/rng"]),
    ("diagnosis/*", ["instrumentation/*", "pipeline/*", "loop/*"]),
    ("drawpoint", ["instrumentation/*", "pipeline/*", "loop/*", "diagnosis/*"]),   # the umbrella
    ("cli/*", ["*"]), ("tests/*", ["*"]), ("bench/*", ["*"]), ("examples/*", ["*"]),
]
ROOM_NAMES = ("instrumentation", "pipeline", "loop", "diagnosis", "cli", "tests", "bench", "examples")

# Libraries by how their includes begin, and the only places that may have them.
LIBRARIES = [
    ("LibTorch", r"(torch|ATen|c10|caffe2)/", ["*/torch/*", "cli/*", "bench/*", "examples/*"]),
    ("oneTBB", r"(tbb|oneapi)/", ["pipeline/loader/threads/worker_pool*", "tests/*", "bench/*", "examples/*"]),
    ("Asio", r"(asio\.hpp$|asio/)", ["pipeline/*", "loop/*", "cli/*", "tests/*", "bench/*", "examples/*"]),
    ("protozero", r"protozero/", ["instrumentation/trace*", "instrumentation/export/*", "loop/loggers/*", "tests/*",
                                   "bench/*"]),
    ("simdjson", r"simdjson", ["instrumentation/import/*"]),
    ("LibTorch, through a header of a torch/ folder,", r"drawpoint/(.*/)?torch/",
     ["*/torch/*", "cli/*", "bench/*", "examples/*", "tests/cli/*"]),
]
UMBRELLA = "drawpoint/drawpoint.hpp"
UMBRELLA_READERS = ["examples/*", "tests/consumer/*", "tests/compile_fail/*"]   # they stand for users

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


def matches(name, patterns):
    return any(fnmatch(name, pattern) for pattern in patterns)


def place(path):
    """pipeline/data_loader for both include/drawpoint/pipeline/loader/data_loader.hpp and pipeline/data_loader.cpp."""
    return re.sub(r"\.[a-z]+$", "", re.sub(r"^(include/)?drawpoint/", "", re.sub(r"^include/", "", str(path))))


def room_of(name):
    return name.split("/")[0]


def included_place(path, target):
    """The place of an included file if it is named as the project's or relative to a parent folder, else None."""
    if target.startswith("../"):
        return place(posixpath.normpath(path.parent / target))
    if target.startswith("drawpoint/") or target.split("/")[0] in ROOM_NAMES and "/" in target:
        return place(target)
    return None


def check(path, text):
    me = place(path)
    findings = []
    for found in INCLUDE.finditer(text):
        target, line = found.group(1), text.count("\n", 0, found.start(1)) + 1
        for library, start, places in LIBRARIES:
            if re.match(start, target) and not matches(me, places):
                findings.append((line, "include-library", f"{target}: {library} belongs only in {', '.join(places)}"))
        if target == UMBRELLA and not matches(me, UMBRELLA_READERS):
            findings.append((line, "include-umbrella", f"{target} is for users; include what is used"))
            continue
        other = included_place(path, target)
        if other is None or room_of(other) == room_of(me) and "/" in me:
            continue
        for files, allowed in ROOMS:
            if fnmatch(me, files):
                if not matches(other, allowed):
                    findings.append((line, "include-graph", f"{me} may not include {other}; of other rooms it may "
                                     f"include {', '.join(allowed) or 'nothing'}"))
                break
        else:
            findings.append((line, "include-graph", f"{me} belongs to no room: name it in {__file__.rsplit('/', 1)[-1]}"))
    return findings


if __name__ == "__main__":
    sys.exit(main(check))
