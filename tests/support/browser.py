"""Chromium without a window, over the pipe of its DevTools protocol. Every address that it asks for is noted."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
INSTALL = "needs Chromium: apt-get install --no-install-recommends chromium (make tools does it)"
SECONDS = 40.0  # for one answer, on a busy machine


def program():
    """The path of Chromium; None where there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One page of a browser. requests: the addresses that were asked for. errors: what scripts complained about."""

    def __init__(self, profile):
        self._number = 0
        self._text = b""
        self.requests, self.errors = [], []
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        command = [
            "bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", program(), "--headless", "--no-sandbox",
            "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars", "--disable-extensions",
            "--disable-component-update", "--disable-background-networking", "--remote-debugging-pipe",
            "--host-resolver-rules=MAP * ~NOTFOUND",  # what a page asks for is noted, and never sent
            f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def close(self):
        """End the browser and its processes."""
        self._session = None
        self.call("Browser.close")
        self._process.wait(SECONDS)
        os.close(self._in)
        os.close(self._out)

    def call(self, method, **given):
        """The result of a command of the protocol."""
        self._number += 1
        session = {"sessionId": self._session} if self._session else {}
        message = {"id": self._number, "method": method, "params": given, **session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self):
        end = time.monotonic() + SECONDS
        while b"\0" not in self._text:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "Chromium gave no answer in time"
            part = os.read(self._in, 1 << 20)
            assert part, f"Chromium ended with {self._process.wait()}"
            self._text += part
        message, _, self._text = self._text.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        given = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(given["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(given["exceptionDetails"]["text"])
            case "Log.entryAdded" if given["entry"]["level"] == "error":
                self.errors.append(given["entry"]["text"])

    def open(self, path, *, width=1150, media="screen", theme="light", fragment=""):
        """Show a file, as wide as a screen or as paper. fragment: the id of an element to which its address leads."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url="about:blank")  # so that an address with another fragment is loaded again
        came = self.call("Page.navigate", url=f"{path.as_uri()}#{fragment}" if fragment else path.as_uri())
        assert "errorText" not in came, f"{path}: {came}"
        end = time.monotonic() + SECONDS
        while self.script("document.readyState") != "complete":  # a page without scripts has no events either
            assert time.monotonic() < end, "the page is not loaded in time"
            time.sleep(0.02)

    def script(self, text):
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True, userGesture=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def picture(self, path, selector="body"):
        """Save a picture of an element."""
        box = self.script(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            "return {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height}; })()"
        )
        shot = self.call("Page.captureScreenshot", clip={**box, "scale": 1}, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))
        return path

    def paper(self, path):
        """Save the page as it is printed, as PDF."""
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"]))
        return path
