"""Runs the session of a client that is not written in Python against an exchange of its own.

    session.py BINARY NAME COMMAND…

The session is told its scene as one JSON argument: where the exchange is, an empty market, the fee
rate, and two traders, each with the key of an owner and the address of its deposit wallet. What it says
that it did is not enough: the fees and pairs that it must have made are looked for in the journal of the
exchange after a stop.
"""

import json
import re
import subprocess
import sys

from exchange import DEPOSIT_WALLET, ENVIRONMENT, KEYS, PATIENCE_S, Exchange
from ledger import micro
from story import RATE, SETTINGS, market

# The owner of the second key, and an address that the operator links to it as its deposit wallet.
SECOND_OWNER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
SECOND_WALLET = "0x00000000000000000000000000000000000d3905"
CASH = "100000"

# What every session trades: takers buy ten at .60 and five at .55, and each pair is made for it. At
# 4 % of p(1-p) they pay .096 and .0495.
PAIRS = "15"
FEES = "0.1455"


def scene(exchange):
    """What a session has to know."""
    condition, tokens = market(exchange, "Does every client get its fill?")
    traders = []
    for key, wallet in zip(KEYS, (DEPOSIT_WALLET, SECOND_WALLET)):
        traders.append({"key": key, "wallet": wallet})
    return {"url": exchange.url, "condition": condition, "tokens": tokens, "rate": RATE, "traders": traders}


def law(exchange):
    """The fees and the backing that the journal of the exchange holds."""
    held = re.search(r"fees (\S+) .* backing (\S+) =", exchange.offline("journal", "verify"))
    return micro(held[1]), micro(held[2])


def play(binary, trade, *settings):
    """Has `trade` do the session with its scene, and looks for what it must have made in the journal."""
    exchange = Exchange(binary, *SETTINGS, *settings)
    try:
        told = scene(exchange)
        exchange.operator("account", "link", SECOND_WALLET, SECOND_OWNER)
        exchange.operator("account", "credit", SECOND_WALLET, CASH, "--ref", "session")
        before = law(exchange)
        try:
            trade(told)
        except Exception:
            print(exchange.output())
            raise
        exchange.stop()
        after = law(exchange)
        moved = tuple(now - then for then, now in zip(before, after))
        assert moved == (micro(FEES), micro(PAIRS)), (before, after)
        print(f"ok: the journal holds {FEES} of fees and {PAIRS} pairs")
    finally:
        exchange.kill()


def main(binary, name, *command):
    def trade(told):
        subprocess.run([*command, json.dumps(told)], timeout=PATIENCE_S, check=True, env=ENVIRONMENT)

    play(binary, trade)
    print(f"done: {name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
