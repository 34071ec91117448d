"""The TypeScript client in a web page: the session that Node runs too, in a browser and from another origin.

    page.py BINARY MODULES

MODULES is the folder in which typescript/package.json is installed. The page is served from a port of its own, so
every request of the client is one of another origin, which the exchange has to allow.
"""

import functools
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading

from browser import Browser
from exchange import ENVIRONMENT, PATIENCE_S, Exchange
from session import play

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = "<!doctype html><title>A trader</title><script src=page.js></script>"


class Site:
    """A server of the page alone."""

    def __init__(self, modules):
        self.folder = tempfile.TemporaryDirectory(prefix="page-")
        script = os.path.join(self.folder.name, "page.js")
        bundler = os.path.join(modules, "node_modules", ".bin", "esbuild")
        command = [os.path.join(modules, "bin", "node"), bundler, "typescript/page.mjs"]
        command += ["--bundle", f"--outfile={script}", "--log-level=warning"]
        # What its modules expect of Node, and what a bundler for browsers leaves to the caller.
        command += ["--define:global=window", "--define:process.env.NODE_DEBUG=undefined"]
        environment = {**ENVIRONMENT, "NODE_PATH": os.path.join(modules, "node_modules")}
        subprocess.run(command, cwd=HERE, env=environment, timeout=PATIENCE_S, check=True)
        with open(os.path.join(self.folder.name, "index.html"), "w") as file:
            file.write(PAGE)
        handler = functools.partial(Quiet, directory=self.folder.name)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def open(self, browser):
        page = browser.page()
        page.open(self.origin + "/")
        page.until("typeof trade", "function")
        return page

    def close(self):
        self.server.shutdown()
        self.folder.cleanup()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def trades(page, told):
    outcome = f"trade({json.dumps(told)}).then(() => 'done', (fault) => String(fault.stack))"
    said = page.evaluate(outcome)
    assert said == "done", f"{said}\n{page.complaints}"


def strangers(binary, browser, site):
    """A page that the exchange does not allow reads nothing."""
    page = site.open(browser)
    for settings in ("allowed_origins=", "allowed_origins=http://127.0.0.1:1"):
        exchange = Exchange(binary, settings)
        try:
            assert page.evaluate(f"fetch('{exchange.url}/time').then(() => 'read', () => 'refused')") == "refused"
            exchange.stop()
        finally:
            exchange.kill()
    print("ok: a page that is not allowed reads nothing")


def main(binary, modules):
    modules = os.path.abspath(modules)
    site, browser = Site(modules), Browser()
    try:
        play(binary, lambda told: trades(site.open(browser), told), f"allowed_origins={site.origin}")
        strangers(binary, browser, site)
    finally:
        browser.close()
        site.close()
    print("done: a web page")


if __name__ == "__main__":
    main(*sys.argv[1:])
