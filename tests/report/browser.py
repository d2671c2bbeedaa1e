"""Chromium without a window, through a pipe: what a page looks like, asks for and complains of.

The DevTools protocol over two file descriptors takes nothing but the standard library.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")


def find():
    """Its path; None where it is not installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One process with one page."""

    def __init__(self, folder):
        self._in, theirs_in = os.pipe()
        theirs_out, self._out = os.pipe()
        # It reads from descriptor 3 and writes to 4.
        shell = f'exec "$0" "$@" 3<&{theirs_out} 4>&{theirs_in}'
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            ["bash", "-c", shell, find(), *options],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest, self._number, self.events = b"", 0, []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self._process.terminate()
        self._process.wait(timeout=20)
        os.close(self._in)
        os.close(self._out)

    def call(self, method, **parameters):
        return self._call(method, session=self._session, **parameters)

    def evaluate(self, expression):
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def open(self, path, *, width, height, dark=False, still=True):
        """Load a page; `events` then holds all that happened since."""
        self.events = []
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"},
        ]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url=path.resolve().as_uri())
        self._wait(lambda: any(e["method"] == "Page.loadEventFired" for e in self.events))
        self.evaluate("document.body.offsetHeight")

    def requests(self):
        sent = [e for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [e["params"]["request"]["url"] for e in sent]

    def complaints(self):
        """Errors and warnings of the console, and exceptions."""
        logged = [e["params"]["entry"] for e in self.events if e["method"] == "Log.entryAdded"]
        said = [e["params"] for e in self.events if e["method"] == "Runtime.consoleAPICalled"]
        thrown = [e["params"] for e in self.events if e["method"] == "Runtime.exceptionThrown"]
        return [entry for entry in logged if entry["level"] in ("error", "warning")] + said + thrown

    def screenshot(self, *, whole=False):
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(shot["data"])

    def _call(self, method, session=None, **parameters):
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answers = self._wait(lambda: [e for e in self.events if e.get("id") == number])
        self.events = [event for event in self.events if "method" in event]
        assert "error" not in answers[0], answers[0]
        return answers[0]["result"]

    def _wait(self, found, seconds=60.0):
        end = time.monotonic() + seconds
        while not (result := found()):
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            read = os.read(self._in, 2**20)
            assert read, "the browser ended"
            *messages, self._rest = (self._rest + read).split(b"\0")
            self.events += [json.loads(message) for message in messages]
        return result
