"""The story, told with an unmodified `kuest-py-clob-client`.

This library signs for deposit wallets only (type 3). Account 0 has one in `outcry dev`; the
operator links and funds one for account 1, as the operator of a real exchange would.
"""

import sys

from py_clob_client.client import ClobClient
from py_clob_client.clob_types import (
    AssetType,
    BalanceAllowanceParams,
    MarketOrderArgs,
    OrderArgs,
    PostOrdersArgs,
    TradeParams,
)
from py_clob_client.exceptions import PolyApiException

from exchange import DEPOSIT_WALLET, KEYS, Exchange
from story import PAGE, SETTINGS, Refused, Story, books_agree

# Any address will do for a deposit wallet that the operator links.
SECOND_WALLET = "0x00000000000000000000000000000000000d3905"
SECOND_CASH = "100000"


class Trader:
    """What the story asks of a client, in this library's words."""

    def __init__(self, name, url, key, wallet):
        self.name = name
        self.wallet = wallet
        self.client = ClobClient(url, chain_id=80002, key=key, signature_type=3, funder=wallet)
        self.client.set_api_creds(self.create_key())

    def create_key(self):
        return self.client.create_api_key()

    def derive_key(self):
        return self.client.derive_api_key()

    def limit(self, token, side, price, size, expiration):
        return self.client.create_order(OrderArgs(token, price, size, side, expiration))

    def market(self, token, side, amount):
        return self.client.create_market_order(MarketOrderArgs(token, amount, side))

    def post(self, signed, kind, post_only):
        return said(lambda: self.client.post_order(signed, kind, post_only))

    def post_batch(self, signed):
        return said(lambda: self.client.post_orders([PostOrdersArgs(order, kind) for order, kind in signed]))

    def cancel(self, order):
        return self.client.cancel(order)

    def cancel_many(self, orders):
        return self.client.cancel_orders(orders)

    def cancel_market(self, condition="", token=""):
        return self.client.cancel_market_orders(condition, token)

    def cancel_all(self):
        return self.client.cancel_all()

    def open_orders(self):
        return self.client.get_orders()

    def order(self, order):
        return self.client.get_order(order)

    def trades(self):
        return self.client.get_trades()

    def trade(self, trade):
        (found,) = self.client.get_trades(TradeParams(id=trade))
        return found

    def balance(self, token):
        kind = AssetType.CONDITIONAL if token else AssetType.COLLATERAL
        return int(self.client.get_balance_allowance(BalanceAllowanceParams(kind, token))["balance"])

    def book(self, token):
        book = self.client.get_order_book(token)
        sides = {side: [vars(level) for level in getattr(book, side)] for side in ("bids", "asks")}
        shown = book.hash
        recomputed = self.client.get_order_book_hash(book)
        return {**sides, "hash": shown}, recomputed

    def price(self, token, side):
        return self.client.get_price(token, side)["price"]

    def midpoint(self, token):
        return self.client.get_midpoint(token)["mid"]

    def spread(self, token):
        return self.client.get_spread(token)["spread"]


def said(act):
    try:
        return act()
    except PolyApiException as error:
        raise Refused(error.status_code, error.error_msg) from error


def readonly_keys(client):
    """A key for whoever may only look, made, tried and revoked with this library."""
    key = client.create_readonly_api_key().api_key
    assert client.get_readonly_api_keys() == [key]
    for revoked in (False, True):
        assert client.validate_readonly_api_key(client.get_address(), key) == {"valid": not revoked}
        assert client.delete_readonly_api_key(key) == {"deleted": not revoked}
    print("ok: a read-only key is good until it is revoked")


def activity(client, story):
    """What this library asks for under a path of its own."""
    events = client.get_market_trades_events(story.condition)
    assert len(events) == PAGE and {event["event_type"] for event in events} == {"trade"}, events
    hashes = {trade["transaction_hash"] for trade in client.get_trades()}
    assert {event["transaction_hash"] for event in events} <= hashes
    print("ok: the newest trades of the market are those that the traders made")


def main(binary):
    exchange = Exchange(binary, *SETTINGS)
    try:
        owner = ClobClient(exchange.url, chain_id=80002, key=KEYS[1]).get_address()
        exchange.operator("account", "link", SECOND_WALLET, owner)
        exchange.operator("account", "credit", SECOND_WALLET, SECOND_CASH, "--ref", "kuest story")
        first = Trader("first", exchange.url, KEYS[0], DEPOSIT_WALLET)
        second = Trader("second", exchange.url, KEYS[1], SECOND_WALLET)
        story = Story(exchange, first, second)
        story.run()
        readonly_keys(first.client)
        activity(first.client, story)
        books_agree(exchange, story)
    finally:
        exchange.kill()
    print("done: kuest-py-clob-client")


if __name__ == "__main__":
    main(sys.argv[1])
