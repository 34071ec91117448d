"""A running exchange, started from the binary under test, and its operator.

Nothing here knows a client library: only the process, its ports file, plain HTTP reads and the
operator's commands.
"""

import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

# How long a start, a stop or one command may take before it counts as hung.
PATIENCE_S = 120

# The public test keys of Anvil, accounts 0 to 3; `outcry dev` funds them.
KEYS = [
    "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
]

# The deposit wallet of account 0, as dev seeds it.
DEPOSIT_WALLET = "0x365f0CA36Ae1f641E02fE3B7743673da42A13A70"


# Without the environment's configuration, which is not under test.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("OUTCRY_")}


class Exchange:
    """One `outcry dev`, or what `command` says, on a data directory of its own."""

    def __init__(self, binary, *settings, command=("dev", "--flow", "0")):
        self.binary = os.path.abspath(binary)
        # Beside the binary: the system's temporary folder may be in memory, where nothing is durable.
        target = os.path.dirname(os.path.dirname(self.binary))
        self.folder = tempfile.TemporaryDirectory(prefix="clients-", dir=target)
        self.data_dir = os.path.join(self.folder.name, "data")
        ports_file = os.path.join(self.folder.name, "ports.json")
        self.log = open(os.path.join(self.folder.name, "log"), "w+")
        command = [self.binary, *command, "--data-dir", self.data_dir]
        command += ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--ports-file", ports_file]
        log_path = os.path.join(self.folder.name, "ring")
        for setting in [f"journal.log_path={log_path}", *settings]:
            command += ["--set", setting]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, env=ENVIRONMENT)
        ports = self._until(lambda: json.loads(open(ports_file).read()), "the ports file")
        self.url = f"http://127.0.0.1:{ports['http']}"
        self.admin_url = f"http://127.0.0.1:{ports['admin']}"
        self._until(lambda: fetch(f"{self.admin_url}/ready"), "GET /ready")

    def _until(self, attempt, what):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.output()}")
            try:
                return attempt()
            except (OSError, ValueError) as error:
                if time.monotonic() > deadline:
                    raise AssertionError(f"{what} did not come: {error}\n{self.output()}") from error
                time.sleep(0.02)

    def output(self):
        self.log.flush()
        return open(self.log.name).read()

    def read(self, path):
        """A public read, as JSON."""
        return json.loads(fetch(self.url + path))

    def operator(self, *words):
        """Runs one operator command and returns what it printed, as JSON."""
        command = [self.binary, *words, "--admin", self.admin_url]
        done = run(command)
        assert done.returncode == 0, f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    def offline(self, *words):
        """Runs one journal command on the data directory of the stopped exchange."""
        command = [self.binary, *words, "--data-dir", self.data_dir]
        done = run(command)
        assert done.returncode == 0, f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def stop(self):
        """Asks the server to stop; it has to end by itself, with success."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=PATIENCE_S)
        assert code == 0, f"a graceful stop ended with {code}:\n{self.output()}"

    def kill(self):
        """Ends the process whatever state it is in, so that a failed run leaves nothing behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def run(command):
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=ENVIRONMENT
    )


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        raise OSError(f"{url}: {error.code} {error.read()[:200]}") from error
