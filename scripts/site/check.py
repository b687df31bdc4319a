#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a site of docc in headless Chromium; see scripts/docs.

    check.py SITE CHROMIUM SCREENSHOTS

Every page's data is read, and every link in it must lead to another page or file of the site. Articles, tutorials, pages of modules, and
each twentieth of the others are opened: they must show their title without an error or a request to another host. The search must find,
and pages must fit, dark and light, narrow and wide.
"""

import base64
import functools
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

# What the search must find, by what is typed.
SEARCHES = {"asCurlewError": "asCurlewError", "AddressPolicy": "AddressPolicy", "survive": "Downloads that survive", "Coming from U": "Coming from URLSession"}
# What it must find first, by the words of the field.
FIRST = {
    "timeout": "Requests, responses, timeouts",
    "retry": "Interceptors: adapt, retry, authenticate",
    "proxy": "Proxy, sockets, names, protocols",
    "certificate": "Security: certificates, pins, address guard",
    "upload": "Uploads and forms",
    "SSE": "Server-sent events (SSE) and JSON lines",
    "mock": "Testing: mock responses, a clock, a server",
}
SHOWN = ("/documentation/curlew", "/documentation/curlew/performance", "/documentation/curlew/howitworks",
         "/documentation/curlew/security", "/documentation/curlew/sessionmanager", "/tutorials/curlew/firstprogram")


class Chromium:
    """A browser that is told by messages over two pipes, so that no port is needed."""

    def __init__(self, program, profile):
        to_browser, self.output = os.pipe()
        self.input, from_browser = os.pipe()

        def connect():
            # The browser reads descriptor 3 and writes descriptor 4; copies, as one of them may be another of these.
            reader, writer = os.dup(to_browser), os.dup(from_browser)
            for descriptor, number in ((reader, 3), (writer, 4)):
                while descriptor in (3, 4) and descriptor != number:
                    descriptor = os.dup(descriptor)
                os.dup2(descriptor, number)

        options = ["--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync",
                   "--disable-component-update", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        if os.geteuid() == 0:
            options.append("--no-sandbox")
        self.process = subprocess.Popen([program, *options, "about:blank"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=connect, close_fds=False)
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.buffer, self.session, self.events = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def receive(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.input, 1 << 16)
            if not piece:
                raise RuntimeError("Chromium has ended")
            self.buffer += piece
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.output, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, script):
        return self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)["result"].get("value")

    def until(self, script, seconds=20):
        """The script's first value that is true; None after that time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.evaluate(script)
            if value:
                return value
            # The browser tells of no event for a change of its document that would be worth the code to wait for it.
            time.sleep(0.03)
        return None

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def view(self, width, dark):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def end(self):
        self.process.terminate()
        self.process.wait(20)


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def links(value, found):
    """Every URL in the references of a page's data."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "url" and isinstance(item, str):
                found.add(item)
            else:
                links(item, found)
    elif isinstance(value, list):
        for item in value:
            links(item, found)


def check_links(site):
    wrong, count = [], 0
    for path in sorted((site / "data").rglob("*.json")):
        page = json.loads(path.read_text(encoding="utf-8"))
        found = set()
        links(page.get("references", {}), found)
        for link in sorted(found):
            count += 1
            target = link.split("#")[0].strip("/")
            if "://" in link or not target:
                continue
            places = [f"data/{target}.json", target]
            # A chapter is a part of its table of tutorials.
            if target.startswith("tutorials/tutorials/"):
                places.append("data/tutorials/tutorials.json")
            if not any((site / place).exists() for place in places):
                wrong.append(f"{path.relative_to(site)}: {link} leads nowhere")
    return wrong, count


def pages(site):
    """The pages to open: articles, tutorials and modules, and each twentieth of the others."""
    chosen, others = [], []
    for path in sorted((site / "data").rglob("*.json")):
        page = json.loads(path.read_text(encoding="utf-8"))
        address = "/" + str(path.relative_to(site / "data").with_suffix(""))
        is_text = page.get("kind") in ("article", "project", "overview", "section") or address.count("/") == 2
        (chosen if is_text else others).append((address, page.get("metadata", {}).get("title", "")))
    return chosen + others[::20], len(chosen) + len(others)


def open_page(browser, root, address):
    browser.events.clear()
    browser.call("Page.navigate", url=root + address + "/")
    heading = browser.until("document.readyState === 'complete' && document.querySelector('h1, .title')?.innerText")
    wrong = []
    if not heading or "can’t be found" in heading or "Not Found" in heading:
        wrong.append(f"{address}: shows {heading!r}")
    for event in browser.events:
        method, what = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            wrong.append(f"{address}: {what['exceptionDetails'].get('text')}")
        elif method == "Network.requestWillBeSent" and not what["request"]["url"].startswith((root, "data:", "blob:")):
            wrong.append(f"{address}: asks {what['request']['url']}")
        elif method == "Network.responseReceived" and what["response"]["status"] >= 400:
            missing = what["response"]["url"]
            if not missing.endswith(("theme-settings.json", "favicon.ico")):
                wrong.append(f"{address}: {missing} has status {what['response']['status']}")
    return wrong


def check_search(browser, root):
    wrong = []
    browser.view(1400, dark=False)
    for typed, title in {**SEARCHES, **FIRST}.items():
        browser.call("Page.navigate", url=f"{root}/documentation/curlew/")
        field = "document.querySelector('.navigator .filter__input, .navigator input, #navigator input')"
        if not browser.until(f"!!{field}"):
            return ["there is no search field beside the pages"]
        # What was typed before stays in the field.
        browser.evaluate(f"{field}.focus(), document.execCommand('selectAll')")
        browser.call("Input.insertText", text=typed)
        # The list uses its elements again, in any order, and keeps others outside of the window. Beside the hits are the groups that
        # they are in.
        hits = (f"[...document.querySelectorAll('.navigator-card-item')].map(item => [item.getBoundingClientRect().top, item.innerText])"
                f".filter(([top]) => top > 0).sort(([one], [other]) => one - other).map(([, text]) => text)"
                f".filter(text => text.toLowerCase().includes({json.dumps(typed.lower())}))")
        if typed in FIRST:
            hits += ".slice(0, 1)"
        if not browser.until(f"{hits}.some(text => text.includes({json.dumps(title)}))"):
            wrong.append(f"the search finds {browser.evaluate(f'{hits}.slice(0, 3)')} for {typed}, and not {title}")
    return wrong


def check_views(browser, root, screenshots):
    wrong = []
    for address in SHOWN:
        for dark in (False, True):
            for name, width in (("narrow", 390), ("wide", 1400)):
                browser.view(width, dark)
                wrong += open_page(browser, root, address)
                if not browser.until("[...document.images].every(image => image.complete)"):
                    wrong.append(f"{address}: its pictures are not loaded")
                if browser.evaluate("document.documentElement.scrollWidth > innerWidth + 1"):
                    wrong.append(f"{address}: is wider than a {name} window")
                broken = browser.evaluate("[...document.images].filter(image => !image.naturalWidth).map(image => image.src).join(' ')")
                if broken:
                    wrong.append(f"{address}: {broken} is no picture")
                color = browser.evaluate("getComputedStyle(document.body).backgroundColor")
                sums = sum(int(part) for part in color.split("(")[1].rstrip(")").split(",")[:3])
                if (sums < 200) != dark:
                    wrong.append(f"{address}: has the background {color}, {'dark' if dark else 'light'}")
                theme = "dark" if dark else "light"
                browser.screenshot(screenshots / f"{address.strip('/').replace('/', '-')}-{theme}-{name}.png")
    return wrong


def main():
    site, program, screenshots = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    screenshots.mkdir(exist_ok=True)
    wrong, count = check_links(site)
    handler = functools.partial(QuietHandler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_address[1]}"
    chosen, total = pages(site)
    with tempfile.TemporaryDirectory() as profile:
        browser = Chromium(program, profile)
        try:
            browser.view(1400, dark=False)
            for address, _ in chosen:
                wrong += open_page(browser, root, address)
            wrong += check_search(browser, root)
            wrong += check_views(browser, root, screenshots)
        finally:
            browser.end()
    server.shutdown()
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr)
        sys.exit(f"{len(wrong)} faults")
    print(f"{count} links hold, {len(chosen)} of {total} pages opened, {len(SEARCHES) + len(FIRST)} searches, {4 * len(SHOWN)} views in {screenshots}")


main()
