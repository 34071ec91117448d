"""Thousands of requests that nobody thought of, made from the OpenAPI document of a live server.

Schemathesis reads `/openapi.json`, makes valid and invalid requests for every operation, signs
them where credentials are needed (`contract_hooks.py`), and holds every answer to the document:
its status, its type, its fields. Checks, limits and the few exceptions, each with its reason, are
in `contract.toml`. The seed is fixed, so that a run repeats; CONTRACT_SEED changes it.
"""

import json
import os
import pathlib
import subprocess
import sys

from py_clob_client_v2 import ClobClient
from py_clob_client_v2.clob_types import OrderArgs

from exchange import KEYS, Exchange

HERE = pathlib.Path(__file__).parent

# A run that takes longer hangs; the time limit of the checks themselves is in contract.toml.
PATIENCE_S = 900

# Operations that a signature and any valid request are enough for.
ALWAYS_DONE = ["account", "orders", "trades", "cancelAll", "apiKeys", "breaker", "apiKeyDerive"]

# Operations that are signed for nonce 0 and may be asked for another one.
OTHER_NONCES = {"apiKeyCreate", "apiKeyDerive"}


def trader(url, key):
    client = ClobClient(url, 80002, key=key)
    client.set_api_creds(client.create_api_key())
    return client


def trade(exchange):
    """Something to be shown: a trade, a resting order and positions. Gives who asks."""
    first, second = trader(exchange.url, KEYS[0]), trader(exchange.url, KEYS[1])
    market = exchange.read("/simplified-markets")["data"][0]
    yes, no = (token["token_id"] for token in market["tokens"])
    for client, token, price, size in [(first, yes, 0.42, 20), (second, no, 0.58, 10), (first, yes, 0.1, 50)]:
        answer = client.post_order(client.create_order(OrderArgs(token, price, size, "BUY")))
        assert answer["success"], answer
    assert first.get_trades() and first.get_open_orders()
    return first


def main(binary):
    exchange = Exchange(binary)
    try:
        client = trade(exchange)
        account = {
            "key": KEYS[0],
            "address": client.get_address(),
            "apiKey": client.creds.api_key,
            "secret": client.creds.api_secret,
            "passphrase": client.creds.api_passphrase,
            "order": client.get_open_orders()[0]["id"],
        }
        environment = {
            **os.environ,
            "CONTRACT_ACCOUNT": json.dumps(account),
            "PYTHONPATH": str(HERE),
            "SCHEMATHESIS_HOOKS": "contract_hooks",
            "CONTRACT_SIGNED": os.path.join(exchange.folder.name, "signed.json"),
        }
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(HERE / "contract.toml"), "run"]
        command += [f"{exchange.url}/openapi.json", "--seed", os.environ.get("CONTRACT_SEED", "1")]
        # What it remembers between runs is removed with the exchange's folder.
        folder = exchange.folder.name
        done = subprocess.run(command, env=environment, cwd=folder, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, f"schemathesis: {done.returncode}"
        signed = json.loads(pathlib.Path(environment["CONTRACT_SIGNED"]).read_text())
        refused = [operation for operation in signed if "401" in signed[operation]]
        assert set(refused) <= OTHER_NONCES, f"whoever signs right is known: {refused}"
        undone = [operation for operation in ALWAYS_DONE if "200" not in signed.get(operation, {})]
        assert not undone, f"nothing that was signed was done: {undone}"
        exchange.stop()
    finally:
        exchange.kill()
    print("done: the server answers as its document says")


if __name__ == "__main__":
    main(sys.argv[1])
