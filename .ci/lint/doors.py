#!/usr/bin/env python3
"""doors.py [PROJECT]: every header for users is included by a door, itself or through another header. Headers in a folder
detail/ are for nobody. Prints file:line: rule: text."""

import re
import sys
from pathlib import Path

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<(drawpoint/[^>\n]+)>", re.MULTILINE)


def check(headers):
    """Paths below include/ that no door leads to; headers: text by path."""
    reached, waiting = set(), [path for path in headers if path.count("/") == 1]
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += INCLUDE.findall(headers.get(path, ""))
    return sorted(path for path in headers if path not in reached and "/detail/" not in path)


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "include"
    found = check({str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in root.rglob("*.hpp")})
    for path in found:
        print(f"include/{path}:1: door: no door includes it: add it to one, or move it into a folder detail/")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
