"""One trading day that every real client goes through, with the ledger checked at every step.

`first` and `second` are two traders behind the same unmodified client library; what differs
between libraries is in `kuest.py` and `polymarket.py`. Rates, sizes and prices are chosen so that
every amount is a whole number of millionths.
"""

import re
import time
from decimal import Decimal

from ledger import ONE, Ask, Ledger, fee, micro, text

# The exchange's fee rate: 4 % of p(1-p), so that fees are visible.
RATE = "0.04"
SETTINGS = ["fees.rate=40000", "fees.exponent=1"]

# Orders and trades are listed in pages of 100; this many need a second page.
PAGE = 100
ORDERS_IN_PAGES = 105
BATCH_MAX = 15


class Refused(Exception):
    """The exchange said no; the client library's own exception, in one shape."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body


def market(exchange, question):
    """Makes an empty market and returns (condition id, token ids)."""
    made = exchange.operator("market", "create", question)
    condition = made.get("condition_id") or made["conditionId"]
    shown = exchange.read(f"/markets/{condition}")
    return condition, [token["token_id"] for token in shown["tokens"]]


class Story:
    def __init__(self, exchange, first, second):
        self.exchange = exchange
        self.first, self.second = first, second
        self.traders = [first, second]
        self.condition, self.tokens = market(exchange, "Does the ledger agree?")
        self.ledger = Ledger(self.tokens, RATE)
        for trader in self.traders:
            self.ledger.fund(trader.name, trader.balance(None))
        # What the exchange had before this story: dev's own quotes may have traded.
        law = re.search(r"fees (\S+) .* backing (\S+) =", exchange.offline("journal", "verify"))
        self.fees_before, self.backing_before = micro(law[1]), micro(law[2])

    def run(self):
        steps = [
            self.keys_are_the_same_when_derived_again,
            self.a_limit_order_rests,
            self.two_buyers_mint_pairs,
            self.a_better_maker_price_goes_to_the_taker,
            self.two_sellers_merge_pairs,
            self.shares_change_hands,
            self.a_dated_order_rests_until_it_is_cancelled,
            self.post_only_never_takes,
            self.fill_or_kill_is_whole_or_nothing,
            self.fill_and_kill_takes_what_there_is,
            self.a_repeated_order_gets_its_first_answer,
            self.refusals_change_nothing,
            self.a_batch_is_judged_order_by_order,
            self.orders_are_cancelled_in_four_ways,
            self.orders_come_in_pages,
            self.trades_come_in_pages,
        ]
        for step in steps:
            started = time.monotonic()
            step()
            self.ledger.check(self.traders)
            print(f"ok: {step.__name__.replace('_', ' ')} ({time.monotonic() - started:.1f} s)")

    # What a step is made of.

    def ask(self, trader, outcome, side, price, size, kind="GTC", expiration=0, post_only=False):
        """Posts one limit order and books what was answered."""
        ask = Ask(outcome, side, micro(str(price)), micro(str(size)), kind, expiration)
        signed = trader.limit(self.tokens[outcome], side, price, size, expiration)
        answer = trader.post(signed, kind, post_only)
        return self.ledger.posted(trader.name, ask, answer, trader.trade)

    def refuse(self, trader, code, *order, **options):
        """Posts one order that has to be refused with this code; the texts are each venue's own."""
        try:
            self.ask(trader, *order, **options)
        except Refused as refusal:
            assert refusal.status == 400, refusal
            assert refusal.body["code"] == code, refusal.body
            self.ledger.refused()
        else:
            raise AssertionError(f"not refused: {order}")

    def cancel(self, trader, order):
        self.ledger.cancelled(trader.cancel(order.id), [order.id])

    def holdings(self, trader):
        wallet = self.ledger.wallets[trader.name]
        return wallet.cash, *wallet.shares

    # The steps.

    def keys_are_the_same_when_derived_again(self):
        for trader in self.traders:
            assert trader.create_key() == trader.derive_key()

    def a_limit_order_rests(self):
        self.resting = self.ask(self.first, 0, "BUY", 0.40, 10)
        record = self.first.order(self.resting.id)
        assert record["id"] == self.resting.id and record["size_matched"] == "0", record

    def two_buyers_mint_pairs(self):
        before = self.holdings(self.first), self.holdings(self.second)
        self.ask(self.second, 1, "BUY", 0.60, 10)
        charged = fee_of(10, 0.60)
        assert moved(before[0], self.holdings(self.first)) == (-4 * ONE, 10 * ONE, 0)
        assert moved(before[1], self.holdings(self.second)) == (-6 * ONE - charged, 0, 10 * ONE)
        assert self.ledger.pairs() == 10 * ONE

    def a_better_maker_price_goes_to_the_taker(self):
        self.ask(self.first, 0, "BUY", 0.45, 20)
        before = self.holdings(self.second)
        rest = self.ask(self.second, 1, "BUY", 0.60, 30)
        assert moved(before, self.holdings(self.second)) == (-11 * ONE - fee_of(20, 0.55), 0, 20 * ONE)
        assert rest.open == 10 * ONE
        self.ledger.check(self.traders)
        self.cancel(self.second, rest)

    def two_sellers_merge_pairs(self):
        pairs = self.ledger.pairs()
        self.ask(self.first, 0, "SELL", 0.40, 5)
        self.ledger.check(self.traders)
        before = self.holdings(self.first), self.holdings(self.second)
        self.ask(self.second, 1, "SELL", 0.50, 5)
        assert moved(before[0], self.holdings(self.first)) == (2 * ONE, -5 * ONE, 0)
        assert moved(before[1], self.holdings(self.second)) == (3 * ONE - fee_of(5, 0.60), 0, -5 * ONE)
        assert self.ledger.pairs() == pairs - 5 * ONE

    def shares_change_hands(self):
        self.ask(self.first, 0, "SELL", 0.52, 6)
        before = self.holdings(self.second)
        self.ask(self.second, 0, "BUY", 0.55, 6)
        assert moved(before, self.holdings(self.second)) == (-3_120_000 - fee_of(6, 0.52), 6 * ONE, 0)

    def a_dated_order_rests_until_it_is_cancelled(self):
        expiration = int(time.time()) + 3_600
        order = self.ask(self.first, 0, "BUY", 0.30, 7, "GTD", expiration)
        self.ledger.check(self.traders)
        self.cancel(self.first, order)

    def post_only_never_takes(self):
        maker = self.ask(self.first, 1, "BUY", 0.35, 8, post_only=True)
        self.ledger.check(self.traders)
        self.refuse(self.second, "post_only_crosses", 0, "BUY", 0.65, 8, post_only=True)
        self.ledger.check(self.traders)
        self.cancel(self.first, maker)

    def fill_or_kill_is_whole_or_nothing(self):
        self.ask(self.first, 0, "BUY", 0.50, 10)
        self.refuse(self.second, "fok_not_filled", 1, "BUY", 0.50, 20, "FOK")
        self.ledger.check(self.traders)
        self.market(self.second, 1, "BUY", 5)

    def fill_and_kill_takes_what_there_is(self):
        self.refuse(self.second, "fak_no_match", 1, "BUY", 0.50, 5, "FAK")
        self.ask(self.first, 0, "BUY", 0.50, 6)
        taken = self.ask(self.second, 1, "BUY", 0.50, 10, "FAK")
        assert taken.matched == 6 * ONE
        assert taken.id not in self.ledger.orders

    def a_repeated_order_gets_its_first_answer(self):
        signed = self.first.limit(self.tokens[0], "BUY", 0.20, 9, 0)
        answer = self.first.post(signed, "GTC", False)
        ask = Ask(0, "BUY", 200_000, 9 * ONE)
        order = self.ledger.posted(self.first.name, ask, answer, self.first.trade)
        again = self.first.post(signed, "GTC", False)
        assert again == answer, (again, answer)
        self.ledger.check(self.traders)
        self.cancel(self.first, order)

    def refusals_change_nothing(self):
        self.refuse(self.first, "not_enough_balance", 0, "BUY", 0.99, 900_000)
        self.refuse(self.first, "not_enough_balance", 0, "SELL", 0.99, 900_000)
        self.refuse(self.first, "size_too_small", 0, "BUY", 0.10, 1)
        self.refuse(self.first, "expiration_type", 0, "BUY", 0.10, 10, "GTC", int(time.time()) + 3_600)

    def a_batch_is_judged_order_by_order(self):
        asks = [Ask(0, "BUY", 100_000, 10 * ONE), Ask(0, "SELL", 990_000, 900_000 * ONE), Ask(1, "BUY", 110_000, 10 * ONE)]
        answers = self.batch(self.first, asks, expect_refused=[1])
        assert "not enough balance" in answers[1]["errorMsg"], answers[1]
        self.ledger.check(self.traders)
        self.ledger.cancelled(self.first.cancel_all(), [answers[0]["orderID"], answers[2]["orderID"]])

    def orders_are_cancelled_in_four_ways(self):
        asks = [Ask(index % 2, "BUY", 100_000 + 10_000 * index, 10 * ONE) for index in range(10)]
        ids = [answer["orderID"] for answer in self.batch(self.first, asks)]
        self.ledger.check(self.traders)
        self.ledger.cancelled(self.first.cancel(ids[0]), [ids[0]])
        self.ledger.check(self.traders)
        self.ledger.cancelled(self.first.cancel_many(ids[1:3]), ids[1:3])
        self.ledger.check(self.traders)
        self.ledger.cancelled(self.first.cancel_market(token=self.tokens[0]), [ids[4], ids[6], ids[8]])
        self.ledger.check(self.traders)
        self.ledger.cancelled(self.first.cancel_market(condition=self.condition), [ids[3], ids[5], ids[7], ids[9]])
        self.ledger.check(self.traders)
        last = self.ask(self.first, 0, "BUY", 0.10, 10)
        self.ledger.cancelled(self.first.cancel_all(), [last.id])
        gone = self.first.cancel(last.id)
        assert gone["canceled"] == [] and "already canceled or matched" in gone["not_canceled"][last.id], gone

    def orders_come_in_pages(self):
        asks = [Ask(0, "BUY", 10_000 * (1 + index % 9), 5 * ONE) for index in range(ORDERS_IN_PAGES)]
        for start in range(0, ORDERS_IN_PAGES, BATCH_MAX):
            self.batch(self.first, asks[start : start + BATCH_MAX])
        assert len(self.first.open_orders()) == ORDERS_IN_PAGES > PAGE
        self.ledger.check(self.traders)
        self.ledger.cancelled(self.first.cancel_all(), [order.id for order in self.ledger.live(self.first.name)])

    def trades_come_in_pages(self):
        self.ask(self.first, 0, "BUY", 0.30, 5 * ORDERS_IN_PAGES)
        asks = [Ask(1, "BUY", 700_000, 5 * ONE, "FAK") for _ in range(ORDERS_IN_PAGES)]
        for start in range(0, ORDERS_IN_PAGES, BATCH_MAX):
            self.batch(self.second, asks[start : start + BATCH_MAX])
        for trader in self.traders:
            shown = trader.trades()
            assert len(shown) == len(set(trade["id"] for trade in shown)), "a trade was listed twice"
            assert {trade["id"] for trade in shown} == set(self.ledger.trades), trader.name
        assert len(self.ledger.trades) > PAGE

    def market(self, trader, outcome, side, amount):
        """A market order as the library prices it: it reads the book first."""
        signed = trader.market(self.tokens[outcome], side, amount)
        answer = trader.post(signed, "FOK", False)
        size = micro(answer["takingAmount"] if side == "BUY" else answer["makingAmount"])
        ask = Ask(outcome, side, ONE if side == "BUY" else 0, size, "FOK")
        return self.ledger.posted(trader.name, ask, answer, trader.trade)

    def batch(self, trader, asks, expect_refused=()):
        signed = [
            (trader.limit(self.tokens[ask.outcome], ask.side, ask.price / ONE, ask.size / ONE, 0), ask.kind)
            for ask in asks
        ]
        answers = trader.post_batch(signed)
        assert len(answers) == len(asks), answers
        for index, (ask, answer) in enumerate(zip(asks, answers)):
            if index in expect_refused:
                assert answer["success"] is False and answer["errorMsg"], answer
            else:
                self.ledger.posted(trader.name, ask, answer, trader.trade)
        return answers


def moved(before, after):
    return tuple(now - then for then, now in zip(before, after))


def fee_of(shares, price):
    return fee(shares * ONE, micro(str(price)), Decimal(RATE))


def books_agree(exchange, story):
    """What is on disk after a stop: the log is proven, and holds the fees and pairs of the story."""
    exchange.stop()
    verified = exchange.offline("journal", "verify")
    law = re.search(r"fees (\S+) .* backing (\S+) =", verified)
    assert law, verified
    fees, backing = micro(law[1]), micro(law[2])
    assert fees == story.fees_before + story.ledger.fees, (verified, story.ledger.fees)
    assert backing == story.backing_before + story.ledger.pairs(), (verified, story.ledger.pairs())
    print(f"ok: the journal holds {text(story.ledger.fees)} of fees and {text(story.ledger.pairs())} pairs")
