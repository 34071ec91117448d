"""A headless Chromium, driven over two pipes by the DevTools protocol; nothing but the standard library.

Commands and answers are JSON texts that end in a zero byte. A page keeps what it complained of: exceptions,
errors on its console, and what its policy or the network refused.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

# How long anything may take before it counts as hung; machines that also build are slow.
PATIENCE_S = 120

# The ends of pipes are moved to numbers above these, so that 3 and 4 are free for the browser.
FREE_FROM = 10


class Browser:
    def __init__(self):
        program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        assert program, "no chromium: apt-get install chromium, or name one in CHROMIUM"
        self.folder = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        their_in, our_out = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FREE_FROM) for end in os.pipe())
        our_in, their_out = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FREE_FROM) for end in os.pipe())
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]
        flags += ["--no-first-run", "--disable-background-networking", "--disable-component-update"]
        flags += ["--remote-debugging-pipe", f"--user-data-dir={self.folder.name}", "about:blank"]

        def place():
            os.dup2(their_in, 3)
            os.dup2(their_out, 4)

        log = open(os.path.join(self.folder.name, "log"), "w")
        self.process = subprocess.Popen(
            [program, *flags],
            preexec_fn=place,
            pass_fds=(3, 4),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        os.close(their_in)
        os.close(their_out)
        self.out, self.into, self.read = our_out, our_in, b""
        self.number, self.pages = 0, {}

    def ask(self, method, session=None, **params):
        """Says one command and waits for its result; what is told meanwhile goes to its page."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self.number:
                assert "error" not in told, f"{method}: {told['error']}"
                return told["result"]
            page = self.pages.get(told.get("sessionId"))
            if page:
                page.hear(told.get("method"), told.get("params", {}))

    def _next(self):
        while b"\0" not in self.read:
            ready, _, _ = select.select([self.into], [], [], PATIENCE_S)
            assert ready, "the browser says nothing"
            piece = os.read(self.into, 1 << 16)
            assert piece, "the browser ended"
            self.read += piece
        message, self.read = self.read.split(b"\0", 1)
        return json.loads(message)

    def page(self):
        return Page(self)

    def close(self):
        # Its children too: one that still writes its profile would create the folder again.
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.folder.cleanup()


class Page:
    def __init__(self, browser):
        self.browser, self.complaints = browser, []
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method, **params):
        return self.browser.ask(method, self.session, **params)

    def hear(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(value.get("value")) for value in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            entry = params["entry"]
            self.complaints.append(f"{entry['text']} {entry.get('url', '')}")

    def open(self, url):
        self.ask("Page.navigate", url=url)

    def evaluate(self, script):
        """The value of an expression in the page."""
        done = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, f"{script}: {done['exceptionDetails']}"
        return done["result"].get("value")

    def until(self, script, wanted=None):
        """Asks again and again until the expression is `wanted`, or true if nothing is; gives its value."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            # A page that is being replaced cannot be asked.
            try:
                value = self.evaluate(script)
            except AssertionError as error:
                value = str(error)
            else:
                if value == wanted if wanted is not None else value:
                    return value
            if time.monotonic() > deadline:
                raise AssertionError(f"{script} stayed {value!r}, not {wanted!r}\n{self.complaints}")
            time.sleep(0.02)

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.textContent ?? null")

    def type(self, selector, text):
        """Puts text into a field as a keyboard does, and Enter behind it."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.evaluate(f"document.querySelector({json.dumps(selector)}).select()")
        self.ask("Input.insertText", text=text)
        for kind in ("keyDown", "keyUp"):
            key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
            self.ask("Input.dispatchKeyEvent", type=kind, **key)

    def dress(self, width, scheme):
        """Shows the page so wide, and in the `light` or `dark` scheme."""
        phone = width < 600
        size = {"width": width, "height": 900, "deviceScaleFactor": 2 if phone else 1, "mobile": phone}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)

    def picture(self, path):
        """Writes the whole page, as long as it is, as PNG."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
