"""The story, told with an unmodified `py-clob-client-v2`.

Account 0 trades from its own address (type 0), account 1 from its proxy (type 1); afterwards one
order each rests from a safe (type 2) and from the deposit wallet (type 3), so that this library's
four ways of signing are all taken.
"""

import pathlib
import sys

from eth_utils import keccak, to_canonical_address, to_checksum_address
from py_clob_client_v2 import ClobClient
from py_clob_client_v2.clob_types import (
    AssetType,
    BalanceAllowanceParams,
    MarketOrderArgs,
    OrderArgs,
    OrderMarketCancelParams,
    OrderPayload,
    PostOrdersV2Args,
    TradeParams,
)
from py_clob_client_v2.exceptions import PolyApiException

from exchange import DEPOSIT_WALLET, KEYS, Exchange
from story import SETTINGS, Refused, Story, books_agree

PROXY_FACTORY = "0xaB45c5A4B0c941a2F231C04C3f49182e1A254052"
PROXY_CODE_HASH = "d21df8dc65880a8606f09fe0ce3df9b8869287ab0b058be05aa9e8af6330a00b"
SAFE_FACTORY = "0xaacFeEa03eb1561C4e67d661e40682Bd20E3541b"
SAFE_CODE_HASH = "2bce2127ff07fb632d16c8347c4ebf501f4841168bed00d9e6ef715ddb6fcecf"


class Trader:
    """What the story asks of a client, in this library's words."""

    def __init__(self, name, url, key, kind=0, wallet=None):
        self.name = name
        self.client = ClobClient(url, 80002, key=key, signature_type=kind, funder=wallet)
        self.wallet = wallet or self.client.get_address()
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
        return said(lambda: self.client.post_orders([PostOrdersV2Args(order, kind) for order, kind in signed]))

    def cancel(self, order):
        return self.client.cancel_order(OrderPayload(orderID=order))

    def cancel_many(self, orders):
        return self.client.cancel_orders(orders)

    def cancel_market(self, condition=None, token=None):
        return self.client.cancel_market_orders(OrderMarketCancelParams(market=condition, asset_id=token))

    def cancel_all(self):
        return self.client.cancel_all()

    def open_orders(self):
        return self.client.get_open_orders()

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
        return book, self.client.get_order_book_hash(dict(book))

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


def derived(factory, salt, code_hash):
    """The address that a factory gives by CREATE2."""
    preimage = b"\xff" + to_canonical_address(factory) + keccak(salt) + bytes.fromhex(code_hash)
    return to_checksum_address(keccak(preimage)[12:])


def address_of(url, key):
    return ClobClient(url, 80002, key=key).get_address()


def main(binary):
    exchange = Exchange(binary, *SETTINGS)
    try:
        owners = [address_of(exchange.url, key) for key in KEYS]
        proxy = derived(PROXY_FACTORY, to_canonical_address(owners[1]), PROXY_CODE_HASH)
        safe = derived(SAFE_FACTORY, bytes(12) + to_canonical_address(owners[2]), SAFE_CODE_HASH)
        first = Trader("first", exchange.url, KEYS[0])
        second = Trader("second", exchange.url, KEYS[1], 1, proxy)
        third = Trader("third", exchange.url, KEYS[2], 2, safe)
        for wallet in (proxy, safe):
            exchange.operator("account", "credit", wallet, "100000", "--ref", f"story {wallet}")
        story = Story(exchange, first, second)
        story.run()
        other_wallets(story, [third, Trader("deposit", exchange.url, KEYS[0], 3, DEPOSIT_WALLET)])
        readme(exchange)
        books_agree(exchange, story)
    finally:
        exchange.kill()
    print("done: py-clob-client-v2")


def other_wallets(story, traders):
    for trader in traders:
        cash = trader.balance(None)
        story.ledger.fund(trader.name, cash)
        order = story.ask(trader, 0, "BUY", 0.05, 10)
        story.ledger._check_orders(trader)
        story.cancel(trader, order)
        assert trader.balance(None) == cash
        print(f"ok: an order rests from wallet {trader.name}")


def readme(exchange):
    """Runs the snippets that README shows, as they stand there."""
    text = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
    names = {}
    for snippet in text.split("```python\n")[1:]:
        code = snippet.split("```")[0].replace("http://127.0.0.1:8080", exchange.url)
        exec(compile(code, "README.md", "exec"), names)
    assert names["event"]["status"] == "LIVE", names["event"]
    resting = {order["id"] for order in names["client"].get_open_orders()}
    assert len(names["quotes"]) == 2 and not resting & set(names["quotes"]), "the maker's end takes its quotes along"
    assert len(names["replaced"]["canceled"]) == 2, names["replaced"]
    print("ok: the snippets of README trade, keep a book, hear of their order and make a market")


if __name__ == "__main__":
    main(sys.argv[1])
