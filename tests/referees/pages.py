#!/usr/bin/env python3
"""Looks at pages of HTML in a headless Chromium: light, dark and printed, on 400 and 1600 pixels, with and without scripts.
A page must ask for nothing, say nothing on the console, not scroll sideways, and break no rule of WCAG 2.1 AA that axe
knows. One line a page, ACCEPT or REJECT; exit 1 if any is rejected, 77 where there is no Chromium.
With --live it looks at what `drawpoint serve` shows of a run that trains: the page must renew itself, but not while it is
paused, and its page for Perfetto must hand the recording over.
usage: pages.py [--screenshots FOLDER] [--live URL] [PAGE...]"""

import argparse
import shutil
import sys
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
SKIPPED = 77
VIEWS = [(scheme, width, scripts) for scheme in ("light", "dark") for width in (400, 1600) for scripts in (True, False)]
VIEWS.append(("print", 1600, True))


def faults_of(browser, page_file, scheme, width, scripts, screenshots):
    """What is wrong with the page in this view, as texts."""
    context = browser.new_context(viewport={"width": width, "height": 900}, java_script_enabled=scripts,
                                  color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()
    faults, asked = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: faults.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    if scheme == "print":
        page.emulate_media(media="print")
    page.goto(url_of(page_file))
    faults += [f"asks for {url}" for url in asked if not url.startswith("data:") and url != url_of(page_file)]
    if screenshots and scripts:
        page.screenshot(path=screenshots / f"{name_of(page_file)}-{scheme}-{width}.png", full_page=True)
    if scripts:   # they are how the page is examined
        if (wide := page.evaluate("document.documentElement.scrollWidth")) > width:
            faults.append(f"is {wide} px wide")
        if scheme != "print":
            for broken in Axe().run(page, options=RULES).response["violations"]:
                faults.append(f"{broken['id']}: {len(broken['nodes'])} nodes, e.g. {broken['nodes'][0]['html'][:120]}")
            zooms(page, faults)
    elif not page.locator("svg").count() or page.locator("button").count():
        faults.append("without scripts: pictures are missing, or buttons that do nothing are there")
    context.close()
    return [f"{scheme} {width}{'' if scripts else ' without scripts'}: {fault}" for fault in faults]


def url_of(page_file):
    return page_file if isinstance(page_file, str) else page_file.resolve().as_uri()


def name_of(page_file):
    return "live" if isinstance(page_file, str) else page_file.stem


def renewing_faults(browser, url):
    """What is wrong with how the page of a run that trains renews itself."""
    page, faults = browser.new_page(), []
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.goto(url)
    steps = lambda: page.locator(".keys li", has_text="steps").locator("data").get_attribute("value")
    first = steps()
    page.wait_for_timeout(4000)
    if steps() == first:
        faults.append(f"after 4 seconds it still says {first} steps")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_timeout(1500)   # one that was on its way
    paused = steps()
    page.wait_for_timeout(3000)
    if steps() != paused:
        faults.append("it renews itself while it is paused")
    page.get_by_role("button", name="Go on").click()
    page.wait_for_timeout(4000)
    if steps() == paused:
        faults.append("it does not go on after a pause")
    page.close()
    return faults


PERFETTO = """<script>addEventListener("message", e => {
if (e.data === "PING") e.source.postMessage("PONG", "*");
else if (e.data.perfetto) document.title = e.data.perfetto.buffer.byteLength + " bytes of " + e.data.perfetto.title})</script>"""


def handing_faults(browser, url):
    """What is wrong with how a recording is handed over to Perfetto, whose place another page takes here."""
    context = browser.new_context()
    context.route("https://ui.perfetto.dev/**", lambda route: route.fulfill(content_type="text/html", body=PERFETTO))
    page = context.new_page()
    page.goto(url + "perfetto")
    if page.evaluate("document.getElementById('state').textContent").startswith("The browser did not"):
        page.get_by_role("button", name="Open in Perfetto").click()
    page.locator("#state", has_text="Perfetto has").wait_for()
    page.wait_for_timeout(500)
    title = next(other for other in context.pages if other is not page).title()
    context.close()
    return [] if int(title.split()[0]) > 1000 and title.endswith("run.pftrace") else [f"Perfetto gets {title}"]


def zooms(page, faults):
    """Where the page has a plot, its buttons show a part of it, and all of it again."""
    plot = page.locator("svg.plot").first
    if not plot.count():
        return
    before = plot.get_attribute("viewBox")
    page.get_by_role("button", name="Zoom in").first.click()
    if plot.get_attribute("viewBox") == before:
        faults.append("the button zooms nothing")
    page.get_by_role("button", name="Whole run").first.click()
    if plot.get_attribute("viewBox") != before:
        faults.append("the button does not show all again")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    options.add_argument("--live", metavar="URL", help="where drawpoint serve shows a run that trains")
    options.add_argument("--screenshots", type=Path, help="puts pictures of the pages into this folder")
    options = options.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        print("not run: pages.py: there is no Chromium (apt-get install chromium)")
        sys.exit(SKIPPED)
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    rejected = False
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for page_file in options.pages + ([options.live] if options.live else []):
            faults = [fault for view in VIEWS for fault in faults_of(browser, page_file, *view, options.screenshots)]
            if page_file is options.live:
                faults += renewing_faults(browser, page_file) + handing_faults(browser, page_file)
            print("REJECT" if faults else "ACCEPT", "pages.py", name_of(page_file), *(f"\n  {fault}" for fault in faults),
                  flush=True)
            rejected |= bool(faults)
        browser.close()
    sys.exit(1 if rejected else 0)


if __name__ == "__main__":
    main()
