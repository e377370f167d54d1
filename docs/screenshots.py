#!/usr/bin/env python3
"""screenshots.py DRAWPOINT: makes the pictures in docs/pictures: the page of a run whose one worker waits for slow reads,
its map of other settings, a comparison with the run that follows the advice, and `drawpoint top`. ./run screenshots calls
it with the Python that has playwright; it needs Chromium."""

import html
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURES = Path(__file__).resolve().parent / "pictures"
TERMINAL = ("<!doctype html><title>top</title><body style='margin:0;background:#16181d;color:#e6e6e6'>"
            "<pre style='margin:0;padding:12px;font:14px/1.25 monospace'>{}</pre>")


def main():
    program, chromium = Path(sys.argv[1]).resolve(), shutil.which("chromium")
    if not chromium:
        sys.exit("screenshots.py: no chromium: apt-get install chromium")

    def drawpoint(*words, **environment):
        return subprocess.run([program, *map(str, words)], check=True, capture_output=True, text=True,
                              env={**os.environ, **environment}).stdout

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        drawpoint("dataset", "generate", "--count", 3, "--out", "pictures")
        drawpoint("dataset", "crops", "--from", "pictures", "--out", "photos", "--per-image", 60, "--size", "160x120")

        def train(workers, name):
            drawpoint("profile", "--data", "photos/train", "--model", "none", "--compute-ms", 4, "--batch-size", 8,
                      "--image-size", 64, "--epochs", 40, "--steps", 400, "--num-workers", workers, "--prefetch-depth", 2,
                      "--read-concurrency", 0, "--inject", "read-latency=2ms", "-o", name)

        train(1, "slow.pftrace")
        train(2, "advised.pftrace")
        drawpoint("report", "slow.pftrace", "--html", "report.html")
        drawpoint("whatif", "slow.pftrace", "--html", "whatif.html")
        drawpoint("compare", "slow.pftrace", "advised.pftrace", "--html", "compare.html")
        frame = drawpoint("top", "--once", "slow.pftrace", COLUMNS="100")
        Path("top.html").write_text(TERMINAL.format(html.escape(frame)))
        PICTURES.mkdir(exist_ok=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for name, height in (("report", 1250), ("whatif", 900), ("compare", 700), ("top", 0)):
                page = browser.new_page(viewport={"width": 1000, "height": height or 400})
                page.goto(Path(f"{name}.html").resolve().as_uri())
                file = PICTURES / f"{name}.png"
                if height:
                    page.screenshot(path=file)
                else:
                    page.locator("pre").screenshot(path=file)
                print(f"{file}: {file.stat().st_size // 1000} kB")
            browser.close()


if __name__ == "__main__":
    main()
