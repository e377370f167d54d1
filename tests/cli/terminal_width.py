#!/usr/bin/env python3
"""terminal_width.py DRAWPOINT [COLUMNS...]: what every command prints on a terminal has no line wider than it, except for
lines with a word (a path, a command) that is wider itself; colour adds nothing but styles; and the report that profile
prints fits on a screen of 24 lines and begins with the verdict."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unicodedata
from pathlib import Path

STYLE = re.compile(r"\x1b\[[0-9;]*[mK]")
QUICK = ("--data", "synthetic:800", "--image-size", "8", "--batch-size", "8", "--num-workers", "1")
STYLES = ("simple", "throughput", "simple-old", "lightning", "lightning-extended", "hannah", "tree", "advanced", "op")
LEAST_INDENT = 13   # of lines that are broken


def on_terminal(columns, *command):
    """(exit code, lines) of a command whose stdout and stderr are a terminal."""
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    process = subprocess.Popen([str(word) for word in command], stdin=slave, stdout=slave, stderr=slave,
                               env=environment | {"TERM": "xterm-256color", "OMP_NUM_THREADS": "1"})
    os.close(slave)
    text = b""
    while True:
        try:
            text += os.read(master, 65536)
        except OSError:   # the program has ended
            break
    os.close(master)
    return process.wait(), re.split(r"\r*\n|\r", text.decode())   # a progress bar goes back with \r


def width_of(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in STYLE.sub("", line))


def too_wide(lines, columns):
    return [line for line in lines if width_of(line) > columns
            and max(map(width_of, line.split()), default=0) <= columns - LEAST_INDENT]


def main():
    program = Path(sys.argv[1]).resolve()
    widths = [int(word) for word in sys.argv[2:]] or [80, 60]
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)

        def run(columns, *words, codes=(0,)):
            code, lines = on_terminal(columns, program, *words)
            said = " ".join(map(str, words))
            if code not in codes:
                faults.append(f"{said}: exit code {code}: " + "\n".join(lines))
            faults.extend(f"{said}: {width_of(line)} columns of {columns}: {line}" for line in too_wide(lines, columns))
            return lines

        run(80, "dataset", "generate", "--count", 3, "--out", "pictures")
        run(80, "dataset", "crops", "--from", "pictures", "--out", "photos", "--per-image", 30, "--size", "160x120")
        photos = ("profile", "--data", "photos/train", "--valid", "photos/valid", "--batch-size", 4, "--image-size", 32)
        lines = run(80, *photos, "--epochs", 4, "-o", "run.pftrace")
        while lines and not STYLE.sub("", lines[0]).strip().startswith("why the draw waits"):
            lines.pop(0)   # the progress bar
        if not 10 < len(lines) - 1 <= 24:
            faults.append("the report of profile does not begin with the verdict, or has more than 24 lines:\n" +
                          "\n".join(lines))
        run(80, *photos, "--profiler", "advanced", "-o", "advanced.pftrace")
        run(80, *photos, "--profiler", "pytorch", "-o", "op.pftrace")
        run(80, "profile", *QUICK, "--model", "mlp", "--epochs", 2, "--html", "page.html", "-o", "quick.pftrace")
        run(80, "tune", *QUICK, "--model", "none", "--most-steps", 200, "--most-workers", 2, "-o", "tuned.toml")
        for command in ("profile", "serve", "gate", "dataset"):
            run(80, "help", command)
        for columns in widths:
            run(columns, "report", "run.pftrace")
            run(columns, "report", "run.pftrace", "--full")
            for style in STYLES:
                file = {"advanced": "advanced.pftrace", "op": "op.pftrace"}.get(style, "run.pftrace")
                run(columns, "report", file, "--style", style)
            run(columns, "diagnose", "run.pftrace")
            run(columns, "diagnose", "run.pftrace", "--explain")
            run(columns, "whatif", "run.pftrace", "--prefetch-depth", "1..12")
            run(columns, "compare", "run.pftrace", "quick.pftrace")
            run(columns, "gate", "run.pftrace", "quick.pftrace", codes=(0, 3))
            run(columns, "bench", "--command", "a=true", "--command", "b=true", "--rounds", 3, "--turn-ms", 0)
            run(columns, "doctor")
            run(columns, "dataset", "info", "photos/train")
            run(columns, "export", "run.pftrace", "--to", "json", "-o", f"{columns}.json")
            run(columns, "report", "missing.pftrace", codes=(1,))
            run(columns, "profile", "--data", "photos", "--model", "none", "--compute-ms", "x", codes=(2,))
        for command in (("report",), ("report", "--full"), ("diagnose",), ("diagnose", "--explain"), ("whatif",)):
            plain, coloured = (run(80, command[0], "run.pftrace", *command[1:], "--color", colour)
                               for colour in ("never", "always"))
            if any("\x1b" in line for line in plain) or not any("\x1b" in line for line in coloured):
                faults.append(f"{' '.join(command)}: colours that --color does not say")
            if [STYLE.sub("", line) for line in coloured] != plain:
                faults.append(f"{' '.join(command)}: another text with colours")
    print("\n".join(faults) if faults else "every line fits")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
