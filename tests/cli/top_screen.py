#!/usr/bin/env python3
"""top_screen.py DRAWPOINT: `drawpoint top` in a terminal emulator (pyte): at three sizes and while it is resized no line
wraps and nothing is left over; keys change the page; and however it ends, the terminal is as it was. Skipped (77) without
pyte, which ./run test installs with what the referees need."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[2] / ".deps/referees/bin/python3"
SKIPPED, SIZES = 77, ((80, 24), (100, 30), (160, 50))
RUN = ["profile", "--data", "synthetic:1000000", "--image-size", "8", "--model", "none", "--compute-ms", "2",
       "--batch-size", "16", "--num-workers", "2"]
LEFT_SCREEN, SHOWN_CURSOR, WRAPS = b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?7h"


class Screen:
    """A program in a terminal of its own."""

    def __init__(self, pyte, arguments, width, height):
        self.pyte = pyte
        self.master, slave = pty.openpty()
        self.slave = slave   # kept open, so that its settings can be read afterwards
        self.resize(width, height)
        self.before = termios.tcgetattr(slave)
        environment = {**os.environ, "TERM": "xterm-256color"}
        self.process = subprocess.Popen(arguments, stdin=slave, stdout=slave, stderr=subprocess.PIPE, env=environment,
                                        start_new_session=True)
        self.bytes = b""

    def resize(self, width, height):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        if not hasattr(self, "screen"):
            self.screen = self.pyte.Screen(width, height)
            self.stream = self.pyte.ByteStream(self.screen)
            return
        self.screen.resize(height, width)
        self.process.send_signal(signal.SIGWINCH)


    def read(self, seconds):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not select.select([self.master], [], [], left)[0]:
                break
            try:
                new = os.read(self.master, 65536)
            except OSError:   # the program and its terminal are gone
                break
            self.bytes += new
            self.stream.feed(new)

    def press(self, keys):
        os.write(self.master, keys)
        self.read(0.6)

    def wait_for(self, text, seconds=30):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.read(0.2)
            if any(text in line for line in self.screen.display):
                return
        raise AssertionError(f"{text!r} is not on the screen:\n" + "\n".join(self.screen.display))

    def wrong(self):
        """What is wrong with the screen; None if nothing is."""
        lines = [line.rstrip() for line in self.screen.display]
        if not lines[-1].startswith("q quit"):
            return f"the last line is {lines[-1]!r}"
        if sum("q quit" in line for line in lines) != 1:
            return "a frame is left over:\n" + "\n".join(lines)
        if "running" not in lines[0] and "paused" not in lines[0]:
            return f"the first line is {lines[0]!r}"
        return None if self.screen.cursor.hidden else "the cursor shows"

    def check(self, what, seconds=20):
        until = time.monotonic() + seconds
        while (found := self.wrong()) is not None:
            assert time.monotonic() < until, f"{what}: {found}"
            self.read(0.2)

    def ended(self, what, code=None):
        self.read(1)
        status = self.process.wait(10)
        assert code is None or status == code, f"{what}: exit code {status}: {self.process.stderr.read()}"
        tail = self.bytes[-200:]
        for sequence in (LEFT_SCREEN, SHOWN_CURSOR, WRAPS):
            assert sequence in tail, f"{what}: {sequence} is missing in {tail}"
        assert termios.tcgetattr(self.slave) == self.before, f"{what}: the terminal's settings have changed"
        os.close(self.slave)
        os.close(self.master)
        print("ok", what, flush=True)


def main():
    if sys.executable != str(PYTHON) and PYTHON.exists():
        os.execv(PYTHON, [str(PYTHON), "-B", *sys.argv])
    try:
        import pyte
    except ImportError:
        print("skipped: no pyte")
        sys.exit(SKIPPED)
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        recording = str(Path(folder) / "run.pftrace")
        run = subprocess.Popen([program, *RUN, "-o", recording], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not Path(recording).exists():
                assert run.poll() is None, "the run ended"
                time.sleep(0.1)
            for width, height in SIZES:
                top = Screen(pyte, [program, "top", str(run.pid)], width, height)
                top.wait_for("samples/s")
                top.check(f"{width}x{height}")
                for key, text in ((b"2", "median"), (b"3", "stage"), (b"5", "verdict"), (b"?", "quits"), (b"1", "queue"),
                                  (b"p", "paused"), (b"p", "running"), (b"\x1b[D", "earlier"), (b"\x1b[C", "running")):
                    top.press(key)
                    top.wait_for(text)
                    top.check(f"{width}x{height}, key {key}")
                for other_width, other_height in ((60, 15), (132, 43), (30, 8), (width, height)):
                    top.resize(other_width, other_height)
                    top.read(0.8)
                    top.check(f"resized to {other_width}x{other_height}")
                assert top.screen.display[0].rstrip().endswith("running"), "a line as wide as the screen is cut"
                top.press(b"\x1b[D\x1b[D3q")   # several keys at once
                top.ended(f"q at {width}x{height}", 0)
            for what, end, code in (("Ctrl-C", lambda top: top.press(b"\x03"), 130),
                                    ("SIGTERM", lambda top: top.process.send_signal(signal.SIGTERM), 130),
                                    ("a crash", lambda top: top.process.send_signal(signal.SIGSEGV), -signal.SIGSEGV),
                                    ("an abort", lambda top: top.process.send_signal(signal.SIGABRT), -signal.SIGABRT)):
                top = Screen(pyte, [program, "top", recording], 80, 24)
                top.wait_for("samples/s")
                end(top)
                top.ended(what, code)
            top = Screen(pyte, [program, "top", recording], 80, 24)
            top.wait_for("running")
            run.kill()
            run.wait()
            top.wait_for("ended without its last records")
            print("ok a killed run", flush=True)
            top.press(b"q")
            top.ended("q after the run", 0)
        finally:
            run.kill()
            run.wait()


if __name__ == "__main__":
    main()
