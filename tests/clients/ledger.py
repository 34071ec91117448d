"""What the exchange must hold, computed from its answers alone.

The ledger hears what was sent and what came back, never what the server shows afterwards. After
each step `check` reads everything that the server shows and compares it: balances, live orders
with every field, both books with their hash, prices. All amounts are integers in millionths.

The rules that it knows are those of a trader: the taker's answer says how much it gave and took,
the trade's record says which makers it met, a maker trades at its own price, a pair of shares is
made or destroyed when both buy or both sell, and the taker pays the fee.
"""

from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

ONE = 1_000_000


def micro(text):
    """Decimal text in millionths; what is finer than a millionth is an error."""
    amount = Decimal(text or "0") * ONE
    assert amount == int(amount), f"{text} is finer than a millionth"
    return int(amount)


def text(amount):
    """Millionths as the shortest decimal text."""
    decimal = Decimal(amount) / ONE
    shown = format(decimal, "f")
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def fee(shares, price, rate):
    """The taker's fee of one fill: shares * rate * p * (1 - p), half up to 5 places."""
    probability = Decimal(price) / ONE
    raw = Decimal(shares) / ONE * rate * probability * (1 - probability)
    return int(raw.quantize(Decimal("0.00001"), rounding=ROUND_HALF_UP) * ONE)


@dataclass
class Wallet:
    cash: int = 0
    shares: list = field(default_factory=lambda: [0, 0])


@dataclass
class Order:
    id: str
    owner: str
    outcome: int
    side: str
    price: int
    size: int
    kind: str
    expiration: int = 0
    matched: int = 0

    @property
    def open(self):
        return self.size - self.matched


@dataclass
class Ask:
    """One order as the trader meant it."""

    outcome: int
    side: str
    price: int
    size: int
    kind: str = "GTC"
    expiration: int = 0


class Ledger:
    """Two tokens of one market, and the wallets of those who trade in it."""

    def __init__(self, tokens, rate="0"):
        self.tokens = tokens
        self.rate = Decimal(rate)
        self.wallets = {}
        self.orders = {}
        self.fees = 0
        self.credits = 0
        self.trades = []
        self.last = None

    def fund(self, name, cash):
        self.wallets[name] = Wallet(cash=cash)
        self.credits += cash

    def live(self, owner=None):
        return [order for order in self.orders.values() if owner in (None, order.owner)]

    def refused(self):
        """A refusal changes nothing; said so that every step is heard."""

    def posted(self, owner, ask, answer, trade_of):
        """One accepted order: `answer` is the result, `trade_of` reads a trade by its id."""
        assert answer["success"] is True and answer["errorMsg"] == "", answer
        assert answer["orderID"] == answer["orderHash"], answer
        order = Order(answer["orderID"], owner, ask.outcome, ask.side, ask.price, ask.size, ask.kind, ask.expiration)
        gave, took = micro(answer["makingAmount"]), micro(answer["takingAmount"])
        trades = [trade_of(trade) for trade in answer.get("tradeIDs") or []]
        assert len(trades) == (1 if gave else 0), f"one trade a taker: {answer}"
        assert len(answer.get("transactionsHashes") or []) == len(trades), answer
        assert answer["status"] == ("matched" if trades else "live"), answer
        for trade in trades:
            self._traded(order, gave, took, trade)
        if order.kind in ("GTC", "GTD") and order.open:
            self.orders[order.id] = order
        return order

    def _traded(self, taker, gave, took, trade):
        assert trade["taker_order_id"] == taker.id and trade["side"] == taker.side, trade
        assert trade["asset_id"] == self.tokens[taker.outcome], trade
        shares, collateral, fees = 0, 0, 0
        for leg in trade["maker_orders"]:
            maker = self.orders[leg["order_id"]]
            size, price = micro(leg["matched_amount"]), micro(leg["price"])
            assert price == maker.price and leg["side"] == maker.side, f"a maker's own price: {leg}"
            assert leg["asset_id"] == self.tokens[maker.outcome], leg
            assert 0 < size <= maker.open, leg
            own = price if maker.outcome == taker.outcome else ONE - price
            assert own <= taker.price if taker.side == "BUY" else own >= taker.price, f"outside the limit: {leg}"
            self._move(maker, size, exact(size, price))
            shares += size
            collateral += exact(size, own)
            fees += fee(size, own, self.rate)
            if not maker.open:
                del self.orders[maker.id]
        expected = (collateral, shares) if taker.side == "BUY" else (shares, collateral)
        assert (gave, took) == expected, f"the answer said {gave}, {took}; the makers add up to {expected}"
        assert micro(trade["size"]) == shares, trade
        self._move(taker, shares, collateral)
        self.wallets[taker.owner].cash -= fees
        self.fees += fees
        self.trades.append(trade["id"])
        mean = Fraction(collateral, shares)
        self.last = (taker.outcome, taker.side, mean)

    def _move(self, order, shares, collateral):
        wallet = self.wallets[order.owner]
        sign = 1 if order.side == "BUY" else -1
        wallet.shares[order.outcome] += sign * shares
        wallet.cash -= sign * collateral
        order.matched += shares

    def cancelled(self, answer, expected):
        assert sorted(answer["canceled"]) == sorted(expected), (answer, expected)
        assert not answer["not_canceled"], answer
        for order in expected:
            del self.orders[order]

    def pairs(self):
        zero = sum(wallet.shares[0] for wallet in self.wallets.values())
        one = sum(wallet.shares[1] for wallet in self.wallets.values())
        assert zero == one, f"{zero} shares of one outcome, {one} of the other"
        return zero

    def book(self, outcome):
        """Levels of both sides in terms of one token, best last: price -> size."""
        bids, asks = {}, {}
        for order in self.orders.values():
            same = order.outcome == outcome
            price = order.price if same else ONE - order.price
            side = bids if (order.side == "BUY") == same else asks
            side[price] = side.get(price, 0) + order.open
        shown = lambda side, down: [(text(p), text(side[p])) for p in sorted(side, reverse=down)]
        return shown(bids, False), shown(asks, True)

    def check(self, traders):
        """Reads everything that the server shows to these traders and compares it."""
        cash = sum(wallet.cash for wallet in self.wallets.values())
        assert cash + self.fees + self.pairs() == self.credits, "money was made or lost"
        for trader in traders:
            wallet = self.wallets[trader.name]
            assert trader.balance(None) == wallet.cash, (trader.name, trader.balance(None), wallet.cash)
            for outcome, token in enumerate(self.tokens):
                shown = trader.balance(token)
                assert shown == wallet.shares[outcome], (trader.name, outcome, shown, wallet.shares)
            self._check_orders(trader)
        for outcome, token in enumerate(self.tokens):
            self._check_book(traders[0], outcome, token)

    def _check_orders(self, trader):
        shown = {record["id"]: record for record in trader.open_orders()}
        expected = {order.id: order for order in self.live(trader.name)}
        assert shown.keys() == expected.keys(), (shown.keys() ^ expected.keys())
        for order in expected.values():
            record = shown[order.id]
            facts = {
                "asset_id": self.tokens[order.outcome],
                "side": order.side,
                "price": text(order.price),
                "original_size": text(order.size),
                "size_matched": text(order.matched),
                "order_type": order.kind,
                "expiration": str(order.expiration),
            }
            for name, value in facts.items():
                assert record[name] == value, f"{order.id}: {name} is {record[name]}, not {value}"
            assert record["status"].lower() == "live", record
            assert record["maker_address"].lower() == trader.wallet.lower(), record

    def _check_book(self, trader, outcome, token):
        bids, asks = self.book(outcome)
        book, recomputed = trader.book(token)
        shown = lambda side: [(level["price"], level["size"]) for level in side]
        assert shown(book["bids"]) == bids, (outcome, "bids", shown(book["bids"])[-5:], bids[-5:])
        assert shown(book["asks"]) == asks, (outcome, "asks", shown(book["asks"])[-5:], asks[-5:])
        assert book["hash"] == recomputed, "the client hashes this book differently"
        if bids:
            assert trader.price(token, "SELL") == bids[-1][0]
        if asks:
            assert trader.price(token, "BUY") == asks[-1][0]
        if bids and asks:
            bid, ask = Decimal(bids[-1][0]), Decimal(asks[-1][0])
            assert Decimal(trader.midpoint(token)) == (bid + ask) / 2
            assert Decimal(trader.spread(token)) == ask - bid


def exact(shares, price):
    """The collateral of so many shares; the story's sizes are chosen so that it is whole."""
    collateral = Fraction(shares * price, ONE)
    assert collateral.denominator == 1, "choose a size whose value is whole millionths"
    return int(collateral)
