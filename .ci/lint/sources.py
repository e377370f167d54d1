"""What the lints share: which files there are, C++ without comments and literals, and how a finding is printed."""

import re
import sys
from pathlib import Path

ROOTS = ("include", "instrumentation", "pipeline", "loop", "diagnosis", "cli", "python", "tests", "bench", "examples")

LITERALS = re.compile(
    r'//[^\n]*|/\*.*?\*/'                                   # comments
    r'|R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"'        # raw strings
    r'|"(?:\\.|[^"\\\n])*"'                                 # strings
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'",                # characters, but not the marks in 1'000
    re.DOTALL)


def cpp_files(project):
    """(path below the project, text) of every C++ file, sorted."""
    for root in ROOTS:
        for path in sorted((Path(project) / root).rglob("*")):
            if path.suffix in (".hpp", ".cpp", ".h"):
                yield path.relative_to(project), path.read_text(encoding="utf-8")


def code_only(text):
    """The text with comments and literals blanked out, each character and each line where it was."""
    return LITERALS.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def main(check):
    """Runs check(path, text) -> [(line, rule, words)] over a project; exit status 1 if anything was found."""
    found = 0
    for path, text in cpp_files(sys.argv[1] if len(sys.argv) > 1 else "."):
        for line, rule, words in check(path, text):
            print(f"{path}:{line}: {rule}: {words}")
            found += 1
    return 1 if found else 0
