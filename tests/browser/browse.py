#!/usr/bin/env python3
"""browse - looks at a report page as a person does, through Chromium's own pipe.

    browse.py PAGE.html SCREENSHOT.png

Chromium reads commands from descriptor 3 and answers on descriptor 4, one JSON text and a NUL
each. Ends with a message and 1 at the first thing that is not as it should be.
"""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time


class Browser:
    def __init__(self):
        program = shutil.which("chromium") or sys.exit("there is no chromium")
        self.profile = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()

        def wire():
            os.dup2(to_read, 63)
            os.dup2(to_write, 64)
            os.dup2(63, 3)
            os.dup2(64, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--disable-dev-shm-usage", "--window-size=1100,900", "--no-first-run",
             "--user-data-dir=" + self.profile],
            preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.number = 0
        self.session = None
        self.events = []

    def receive(self):
        while b"\0" not in self.buffer:
            got = os.read(self.back, 1 << 20)
            if not got:
                sys.exit("chromium went away")
            self.buffer += got
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, url):
        target = self.call("Target.createTarget", url="about:blank")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Page.navigate", url=url)

    def ask(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            sys.exit(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.ask(expression):
                return
            time.sleep(0.1)
        sys.exit("waited in vain for " + expression)

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y,
                  button="none" if kind == "mouseMoved" else "left", clickCount=1)

    def middle(self, selector):
        return self.ask("(function () { var e = document.querySelector(" + json.dumps(selector) +
                        "); e.scrollIntoView({block: 'center'}); var r = e.getBoundingClientRect();"
                        "return [r.x + r.width / 2, r.y + r.height / 2]; })()")

    def click(self, selector):
        x, y = self.middle(selector)
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


def expect(good, what):
    if not good:
        sys.exit("not so: " + what)


def look(browser, page, shot):
    browser.open("file://" + os.path.abspath(page))
    browser.wait("document.body && document.body.dataset.drawn === 'yes'")
    for section in ("scatter", "breakdown", "memory", "parallel", "heat"):
        drawn = browser.ask(f"document.querySelectorAll('#{section} .marks').length")
        expect(drawn >= 1, f"section {section} has a drawing")
    size = browser.call("Page.getLayoutMetrics")["cssContentSize"]
    picture = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip={
        "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})
    with open(shot, "wb") as file:
        file.write(base64.b64decode(picture["data"]))
    expect(browser.ask("document.querySelector('h1').textContent") == 'Layouts <of> "7B" </script>',
           "the title is text")
    interact(browser)
    noise = [e for e in browser.events
             if e.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded",
                                    "Runtime.consoleAPICalled")]
    expect(not noise, f"a silent console: {noise[:3]}")
    asked = [e["params"]["request"]["url"] for e in browser.events
             if e.get("method") == "Network.requestWillBeSent"]
    expect(all(url.startswith(("file://", "data:", "blob:")) for url in asked),
           f"nothing is fetched: {[u[:80] for u in asked]}")


def interact(browser):
    cells = "Array.from(document.querySelectorAll('#top tbody tr'))" \
            ".map(function (r) { return Number(r.cells[2].textContent); })"
    all_rows = len(browser.ask(cells))
    expect(all_rows > 10, "the table has rows")
    browser.click("#top th:nth-child(3) button")
    steps = browser.ask(cells)
    expect(steps == sorted(steps, reverse=True), "a click sorts by step time, longest first")
    browser.click("#top th:nth-child(3) button")
    steps = browser.ask(cells)
    expect(steps == sorted(steps), "a second click turns the order around")
    browser.click("#filter")
    browser.call("Input.insertText", text="tp=2 dispatch=graph")
    names = browser.ask("Array.from(document.querySelectorAll('#top tbody tr'))"
                        ".map(function (r) { return r.cells[0].textContent; })")
    expect(0 < len(names) < all_rows and all("tp=2" in n and "graph" in n for n in names),
           f"the filter keeps what it names: {names[:3]}")
    before = browser.ask("document.querySelectorAll('tr.chosen').length")
    browser.click("#top tbody tr:last-child")
    after = browser.ask("document.querySelectorAll('tr.chosen').length")
    expect(abs(after - before) == 1, "a click on a row chooses it")
    browser.ask("(function () { var s = document.getElementById('heat-x');"
                "s.value = s.options[2].value; s.dispatchEvent(new Event('change')); })()")
    browser.wait("document.querySelectorAll('#heat .marks').length >= 1")
    # A person's pointer over a point of the scatter brings up its tooltip.
    points = browser.middle("#scatter .mark-symbol.role-mark path")
    browser.mouse("mouseMoved", points[0] + 30, points[1] + 30)
    browser.mouse("mouseMoved", points[0], points[1])
    browser.wait("(document.querySelector('#vg-tooltip-element.visible') || {textContent: ''})"
                 ".textContent.includes('tokens/s')", 10)


def main():
    browser = Browser()
    try:
        look(browser, sys.argv[1], sys.argv[2])
    finally:
        browser.close()


main()
