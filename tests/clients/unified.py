"""What the venue's newer client asks about wallets and markets, by an unmodified `polymarket-client`.

Its environments are the venue's own, so one is made with this exchange's address. Two accounts trade, and then every
answer of the data API's second version has to parse and to say what they did.
"""

import dataclasses
import sys
import time
from decimal import Decimal

# Behind the libraries: `polymarket` is one of them, and not the file beside this one.
sys.path.append(sys.path.pop(0))

from polymarket import environments
from polymarket.clients.public import PublicClient
from polymarket.clients.secure import SecureClient
from polymarket.errors import RequestRejectedError
from eth_account import Account

from exchange import KEYS, PATIENCE_S, Exchange

# The library signs for the venue's chain.
CHAIN = 137
SETTINGS = [f"chain_id={CHAIN}"]

SIZE, PRICE = Decimal(10), Decimal("0.40")
UNKNOWN = "0x" + "99" * 20


def environment(url):
    """The venue's environment, at this exchange's address."""
    config = dataclasses.replace(environments.PRODUCTION._config, clob_url=url, gamma_url=url, data_url=url)
    return environments._create_environment(name="production", config=config)


def every(paginator):
    """Every row of a list, page by page."""
    return [row for page in paginator for row in page.items]


def trade(env, market):
    """One buys ten Yes, the other ten No: a pair for one each."""
    yes, no = market["tokens"]
    for key, token, price in ((KEYS[0], yes, PRICE), (KEYS[1], no, 1 - PRICE)):
        owner = Account.from_key(key).address
        client = SecureClient.create(private_key=key, wallet=owner, environment=env)
        done = client.place_limit_order(token_id=token, price=str(price), size=int(SIZE), side="BUY")
        assert done.ok, done
    print("ok: two orders make ten pairs")


def wallets(client, market, maker, taker):
    condition, (yes, no) = market["conditionId"], market["tokens"]
    for wallet, token, price in ((maker, yes, PRICE), (taker, no, 1 - PRICE)):
        (position,) = every(client.list_positions(user=wallet, condition_id=condition, page_size=1))
        assert position.asset_id == token and position.current_size == SIZE and position.avg_price == price, position
        (acted,) = every(client.list_activity(user=wallet, condition_id=condition))
        assert acted.type == "TRADE" and acted.shares == SIZE and acted.price == price, acted
        value = client.get_portfolio_value(user=wallet, condition_ids=condition).value
        assert abs(value - SIZE * price) < Decimal("0.001"), value
        stats = client.get_user_stats(user=wallet)
        assert stats.traded_market_count == 1 and stats.all_time_pnl.trade_count == 1, stats
        for volume in (
            client.get_user_volume(user=wallet, full_history=True),
            client.get_user_volume(user=wallet, start=int(time.time()) - 86_400),
            client.get_user_pnl(user=wallet).points[-1],
        ):
            assert volume.volume == SIZE and volume.volume_usdc == SIZE * price, volume
        standing = client.get_trader_leaderboard_standing(user=wallet, window="all")
        assert standing.volume == SIZE, standing
    assert every(client.list_positions(user=UNKNOWN)) == [] and client.get_user_stats(user=UNKNOWN) is None
    listed = every(client.list_trader_leaderboard(window="all", sort_by="VOLUME", page_size=1))
    assert {row.wallet.lower() for row in listed} >= {maker.lower(), taker.lower()}, listed
    assert every(client.list_combo_positions(user=maker)) == [] == every(client.list_combo_activity(user=maker))
    print("ok: positions, activity, worth, volume, profit and rank are what they did")


def markets(client, market, taker):
    condition, (yes, no) = market["conditionId"], market["tokens"]
    (taken,) = every(client.list_trades(condition_id=condition))
    assert taken.asset_id == no and taken.size == SIZE and taken.wallet.lower() == taker.lower(), taken
    both = every(client.list_trades(condition_id=condition, taker_only=False, page_size=1))
    assert len(both) == 2, both
    holders = every(client.list_market_holders(condition_ids=condition, include_pnl=True, page_size=1))
    assert {(group.asset_id, holder.amount) for group in holders for holder in group.holders} == {(yes, SIZE), (no, SIZE)}
    (interest,) = client.get_open_interests(condition_ids=condition)
    assert interest.value == SIZE, interest
    tokens = client.get_token_references(condition_ids=condition)
    assert [token.asset_id for token in tokens] == [yes, no] and not tokens[0].resolved, tokens
    (resolution,) = client.get_resolutions(condition_ids=condition)
    assert resolution.status == "initialized", resolution
    prices = every(client.list_price_history(asset_id=yes, interval="1h"))
    assert prices[-1].price == PRICE, prices
    print("ok: trades, holders, interest, tokens and prices are the market's")


def resolved(exchange, client, market, maker, taker):
    condition, (yes, no) = market["conditionId"], market["tokens"]
    exchange.operator("market", "resolve", "--payout", "1", str(market["marketId"]))
    (resolution,) = client.get_resolutions(condition_ids=condition)
    assert resolution.status == "resolved", resolution
    for wallet, token, payout, status in ((maker, yes, 1, "REDEEMABLE"), (taker, no, 0, "REDEEMABLE_LOST")):
        (position,) = every(client.list_positions(user=wallet, condition_id=condition, status=status))
        assert position.asset_id == token and position.current_price == payout and position.redeemable, position
        (price,) = every(client.list_price_history(asset_id=token, as_of=int(time.time()) + 1))
        assert price.price == payout, price
    print("ok: a resolution is what positions and prices say")


def searched(client, question):
    """What is found, asked again while the answer is 503: the index is being built, or the machine is busy."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return client.search(q=question).first_page().items[0]
        except RequestRejectedError as error:
            if error.status != 503 or time.monotonic() > deadline:
                raise


def catalog(client, market, question):
    found = searched(client, question)
    (hit,) = [event for event in found.events if event.title == question]
    assert [listed.condition_id for listed in hit.markets] == [market["conditionId"]], hit
    listed = every(client.list_markets(page_size=3))
    assert market["conditionId"] in {one.condition_id for one in listed}, len(listed)
    print("ok: the market is listed, and a search shows it")


def main(binary):
    exchange = Exchange(binary, *SETTINGS)
    try:
        question = "Will the second version be understood?"
        market = exchange.operator("market", "create", question)
        maker, taker = (Account.from_key(key).address for key in KEYS[:2])
        env = environment(exchange.url)
        client = PublicClient(environment=env)
        trade(env, market)
        wallets(client, market, maker, taker)
        markets(client, market, taker)
        catalog(client, market, question)
        resolved(exchange, client, market, maker, taker)
    finally:
        exchange.kill()
    print("done: polymarket-client")


main(sys.argv[1])
