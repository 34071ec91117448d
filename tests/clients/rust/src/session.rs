//! One session, compiled against each client; `super` names the client, and how its traders sign in.

use super::sdk;
use crate::{Scene, Trader, done};
use anyhow::{Context as _, Result, ensure};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use sdk::auth::{ExposeSecret as _, LocalSigner, Normal, Signer as _, state::Authenticated};
use sdk::clob::types::request::{
    BalanceAllowanceRequest, OrderBookSummaryRequest, OrdersRequest, TradesRequest,
};
use sdk::clob::types::{Amount, AssetType, OrderStatusType, OrderType, Side, TickSize, TraderSide};
use sdk::clob::types::{SignedOrder, response::PostOrderResponse};
use sdk::clob::ws::types::response::{OrderMessage, OrderMessageType, TradeMessage};
use sdk::clob::ws::{self, LastTradePrice, PriceChange, WsMessage};
use sdk::clob::{Client, Config};
use sdk::types::{B256, Decimal, NaiveDate, U256};
use std::pin::Pin;
use std::time::{Duration, Instant};

type SignedIn = Client<Authenticated<Normal>>;
type Heard<T> = Pin<Box<dyn Stream<Item = sdk::Result<T>>>>;

/// The cursor after the last page.
const END: &str = "LTE=";
const PAGE: u64 = 100;
const ORDERS_IN_PAGES: usize = 105;
const BATCH_MAX: usize = 15;

/// How long a message may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait for a message before the order that causes it is placed once more.
const AGAIN: Duration = Duration::from_millis(500);

/// A trader with its client and its credentials.
struct Party {
    client: SignedIn,
    key: String,
}

/// The market that is traded, in the client's own types.
struct Market {
    condition: B256,
    yes: U256,
    no: U256,
}

/// The messages about the market and about the first trader.
struct Streams {
    prices: Heard<PriceChange>,
    last_trades: Heard<LastTradePrice>,
    user: Heard<WsMessage>,
    /// Streams end with their clients.
    _clients: (ws::Client, Box<ws::Client<Authenticated<Normal>>>),
}

pub(crate) async fn run(scene: &Scene) -> Result<()> {
    let market = Market {
        condition: scene.condition.parse()?,
        yes: scene.tokens[0].parse()?,
        no: scene.tokens[1].parse()?,
    };
    let first = Party::sign_in(&scene.url, &scene.traders[0]).await?;
    let second = Party::sign_in(&scene.url, &scene.traders[1]).await?;

    let mut started = Instant::now();
    let mut next = |step| done(step, std::mem::replace(&mut started, Instant::now()));
    reads_are_open(&scene.url, scene, &market).await?;
    next("reads are open");
    keys_are_the_same_again(&scene.url, &first, &scene.traders[0]).await?;
    next("keys are the same again");
    let mut streams = listen(&scene.url, &first, &market).await?;
    next("both streams are heard");
    let resting = an_order_rests(&first, &market, &mut streams).await?;
    next("an order rests");
    let filled = a_market_order_fills([&first, &second], &market, &mut streams, &resting).await?;
    next("a market order fills");
    let taken = fill_and_kill_takes_what_there_is(&first, &second, &market).await?;
    next("fill and kill takes what there is");
    refusals_are_told(&first, &market).await?;
    next("refusals are told");
    trades_are_listed([&first, &second], &market, [&filled, &taken]).await?;
    next("trades are listed");
    orders_are_cancelled(&first, &market, &mut streams).await?;
    next("orders are cancelled");
    orders_come_in_pages(&first, &market).await?;
    next("orders come in pages");
    what_is_not_run_is_empty(&first, &market).await?;
    next("what is not run is empty");
    Ok(())
}

impl Party {
    async fn sign_in(url: &str, trader: &Trader) -> Result<Self> {
        Ok(Self { client: super::sign_in(url, trader).await?, key: trader.key.clone() })
    }

    async fn limit(&self, token: U256, price: &str, size: &str) -> Result<SignedOrder> {
        let order = self.client.limit_order().token_id(token).side(Side::Buy).order_type(OrderType::GTC);
        let order = order.price(decimal(price)).size(decimal(size)).build().await?;
        Ok(self.client.sign(&signer(&self.key), order).await?)
    }

    async fn post(&self, token: U256, price: &str, size: &str) -> Result<PostOrderResponse> {
        Ok(self.client.post_order(self.limit(token, price, size).await?).await?)
    }

    /// Buys at once, for this much collateral.
    async fn spend(&self, token: U256, usdc: &str, kind: OrderType) -> Result<PostOrderResponse> {
        let order = self.client.market_order().token_id(token).side(Side::Buy).order_type(kind);
        let order = order.amount(Amount::usdc(decimal(usdc))?).build().await?;
        Ok(self.client.post_order(self.client.sign(&signer(&self.key), order).await?).await?)
    }

    /// Collateral and shares of both tokens, in millionths.
    async fn holdings(&self, market: &Market) -> Result<[Decimal; 3]> {
        let cash = BalanceAllowanceRequest::builder().asset_type(AssetType::Collateral).build();
        let shares = |token| {
            BalanceAllowanceRequest::builder().asset_type(AssetType::Conditional).token_id(token).build()
        };
        let mut held = [Decimal::ZERO; 3];
        for (held, request) in held.iter_mut().zip([cash, shares(market.yes), shares(market.no)]) {
            *held = self.client.balance_allowance(request).await?.balance;
        }
        Ok(held)
    }

    /// The trade that an answer names. A client without a field for its id has to look for it.
    async fn trade_of(&self, answer: &PostOrderResponse) -> Result<String> {
        let page = self.client.trades(&TradesRequest::default(), None).await?;
        let trade = page.data.iter().find(|trade| trade.taker_order_id == answer.order_id);
        let id = trade.context("the trade is not listed")?.id.clone();
        let named: &[String] = if super::NAMES_TRADES { std::slice::from_ref(&id) } else { &[] };
        ensure!(answer.trade_ids == named, "{answer:?}");
        Ok(id)
    }

    async fn open_orders(&self) -> Result<Vec<String>> {
        let page = self.client.orders(&OrdersRequest::default(), None).await?;
        Ok(page.data.into_iter().map(|order| order.id).collect())
    }
}

fn signer(key: &str) -> impl sdk::auth::Signer + use<> {
    key.parse::<LocalSigner<_>>().expect("a key").with_chain_id(Some(sdk::AMOY))
}

fn decimal(text: &str) -> Decimal {
    text.parse().expect("a number")
}

fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort();
    items
}

/// What moved between two looks at a trader's holdings.
fn moved(before: [Decimal; 3], after: [Decimal; 3]) -> [Decimal; 3] {
    std::array::from_fn(|at| after[at] - before[at])
}

/// The next message that fits; those before it are skipped.
async fn until<T: std::fmt::Debug>(stream: &mut Heard<T>, fits: impl Fn(&T) -> bool) -> Result<T> {
    let search = async {
        loop {
            let message = stream.next().await.context("the stream ended")??;
            if fits(&message) {
                return anyhow::Ok(message);
            }
        }
    };
    tokio::time::timeout(PATIENCE, search).await.context("no such message came")?
}

async fn until_order(
    stream: &mut Heard<WsMessage>,
    kind: OrderMessageType,
    id: &str,
) -> Result<OrderMessage> {
    let fits = |message: &WsMessage| match message {
        WsMessage::Order(order) => order.id == id && order.msg_type.as_ref() == Some(&kind),
        _ => false,
    };
    match until(stream, fits).await? {
        WsMessage::Order(order) => Ok(order),
        _ => unreachable!("it was looked at"),
    }
}

async fn until_trade(stream: &mut Heard<WsMessage>, id: &str) -> Result<TradeMessage> {
    let fits = |message: &WsMessage| matches!(message, WsMessage::Trade(trade) if trade.id == id);
    match until(stream, fits).await? {
        WsMessage::Trade(trade) => Ok(trade),
        _ => unreachable!("it was looked at"),
    }
}

async fn reads_are_open(url: &str, scene: &Scene, market: &Market) -> Result<()> {
    let client = Client::new(url, Config::default())?;
    ensure!(client.ok().await? == "OK");
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    ensure!(client.server_time().await?.abs_diff(clock.try_into()?) < 60);
    ensure!(client.version().await? == 2);
    let listed: Vec<_> = client.stream_data(Client::markets).try_collect().await?;
    let shown = listed.iter().find(|row| row.condition_id == Some(market.condition)).context("not listed")?;
    ensure!(shown.tokens.iter().map(|token| token.token_id).eq([market.yes, market.no]));
    ensure!(client.market(&scene.condition).await? == *shown);
    ensure!(client.tick_size(market.yes).await?.minimum_tick_size == TickSize::Hundredth);
    ensure!(!client.neg_risk(market.yes).await?.neg_risk);
    let info = client.clob_market_info(&scene.condition).await?;
    ensure!(info.fee_details.is_some_and(|fee| fee.rate == decimal("0.04") && fee.exponent == 1));
    let book = client.order_book(&book_of(market.yes)).await?;
    ensure!((book.market, book.asset_id) == (market.condition, market.yes));
    ensure!(book.bids.is_empty() && book.asks.is_empty(), "{book:?}");
    Ok(())
}

fn book_of(token: U256) -> OrderBookSummaryRequest {
    OrderBookSummaryRequest::builder().token_id(token).build()
}

async fn keys_are_the_same_again(url: &str, party: &Party, trader: &Trader) -> Result<()> {
    let again = super::sign_in(url, trader).await?;
    let [made, derived] = [&party.client, &again].map(SignedIn::credentials);
    ensure!(made.key() == derived.key());
    ensure!(made.secret().expose_secret() == derived.secret().expose_secret());
    ensure!(made.passphrase().expose_secret() == derived.passphrase().expose_secret());
    ensure!(format!("{:?}", party.client.api_keys().await?).contains(&made.key().to_string()));
    ensure!(!party.client.closed_only_mode().await?.closed_only);
    let readonly = party.client.create_readonly_api_key().await?.api_key;
    ensure!(party.client.readonly_api_keys().await? == std::slice::from_ref(&readonly));
    party.client.delete_readonly_api_key(&readonly).await?;
    ensure!(party.client.readonly_api_keys().await?.is_empty());
    Ok(())
}

/// Follows both channels. A client connects when it likes, so orders are placed and cancelled until
/// the first one is reported on each.
async fn listen(url: &str, first: &Party, market: &Market) -> Result<Streams> {
    let url = url.replacen("http", "ws", 1);
    let public = ws::Client::new(&url, sdk::ws::config::Config::default())?;
    let tokens = vec![market.yes, market.no];
    let mut books: Heard<_> = Box::pin(public.subscribe_orderbook(tokens.clone())?);
    let book = until(&mut books, |book| book.asset_id == market.yes).await?;
    ensure!(book.bids.is_empty() && book.asks.is_empty());
    let prices: Heard<_> = Box::pin(public.subscribe_prices(tokens.clone())?);
    let last_trades: Heard<_> = Box::pin(public.subscribe_last_trade_price(tokens)?);
    let private = ws::Client::new(&url, sdk::ws::config::Config::default())?;
    let private = private.authenticate(first.client.credentials().clone(), first.client.address())?;
    let mut user: Heard<_> = Box::pin(private.subscribe_user_events(vec![market.condition])?);
    let deadline = Instant::now() + PATIENCE;
    loop {
        ensure!(Instant::now() < deadline, "nothing was heard on the user's channel");
        let probe = first.post(market.yes, "0.01", "5").await?.order_id;
        ensure!(first.client.cancel_order(&probe).await?.canceled == [probe.as_str()]);
        let heard = until_order(&mut user, OrderMessageType::Cancellation, &probe);
        if let Ok(heard) = tokio::time::timeout(AGAIN, heard).await {
            heard?;
            break;
        }
    }
    Ok(Streams { prices, last_trades, user, _clients: (public, Box::new(private)) })
}

async fn an_order_rests(first: &Party, market: &Market, streams: &mut Streams) -> Result<String> {
    let answer = first.post(market.yes, "0.40", "10").await?;
    ensure!(answer.success && answer.status == OrderStatusType::Live, "{answer:?}");
    let order = first.client.order(&answer.order_id).await?;
    ensure!(order.id == answer.order_id && order.status == OrderStatusType::Live, "{order:?}");
    ensure!((order.market, order.asset_id, order.side) == (market.condition, market.yes, Side::Buy));
    let sizes = (order.price, order.original_size, order.size_matched);
    ensure!(sizes == (decimal("0.4"), decimal("10"), Decimal::ZERO), "{order:?}");
    ensure!(first.open_orders().await? == [answer.order_id.as_str()]);
    let levels = |levels: Vec<_>| -> Vec<(Decimal, Decimal)> {
        levels
            .into_iter()
            .map(|level: sdk::clob::types::response::OrderSummary| (level.price, level.size))
            .collect()
    };
    let book = first.client.order_book(&book_of(market.yes)).await?;
    ensure!(levels(book.bids) == [(decimal("0.4"), decimal("10"))] && book.asks.is_empty());
    let mirrored = first.client.order_book(&book_of(market.no)).await?;
    ensure!(levels(mirrored.asks) == [(decimal("0.6"), decimal("10"))] && mirrored.bids.is_empty());

    let placed = until_order(&mut streams.user, OrderMessageType::Placement, &answer.order_id).await?;
    ensure!(placed.price == decimal("0.4") && placed.original_size == Some(decimal("10")), "{placed:?}");
    let is_level = |entry: &&ws::types::response::PriceChangeBatchEntry| {
        entry.asset_id == market.yes && entry.price == decimal("0.4")
    };
    let change =
        until(&mut streams.prices, |change| change.price_changes.iter().any(|entry| is_level(&entry)))
            .await?;
    let level = change.price_changes.iter().find(is_level).expect("it was looked at");
    ensure!(level.side == Side::Buy && level.size == Some(decimal("10")), "{level:?}");
    ensure!(level.best_bid == Some(decimal("0.4")), "{level:?}");
    Ok(answer.order_id)
}

async fn a_market_order_fills(
    [first, second]: [&Party; 2],
    market: &Market,
    streams: &mut Streams,
    resting: &str,
) -> Result<String> {
    let before = [first.holdings(market).await?, second.holdings(market).await?];
    let answer = second.spend(market.no, "6", OrderType::FOK).await?;
    ensure!(answer.success && answer.status == OrderStatusType::Matched, "{answer:?}");
    ensure!((answer.making_amount, answer.taking_amount) == (decimal("6"), decimal("10")), "{answer:?}");
    ensure!(answer.transaction_hashes.len() == 1 && answer.transaction_hashes[0] != B256::ZERO);
    let expected = ["-4000000", "10000000", "0"].map(decimal);
    ensure!(moved(before[0], first.holdings(market).await?) == expected);
    // At 4 % of p(1-p) the taker pays .096.
    let expected = ["-6096000", "0", "10000000"].map(decimal);
    ensure!(moved(before[1], second.holdings(market).await?) == expected);

    let update = until_order(&mut streams.user, OrderMessageType::Update, resting).await?;
    ensure!(update.size_matched == Some(decimal("10")), "{update:?}");
    let id = second.trade_of(&answer).await?;
    let trade = until_trade(&mut streams.user, &id).await?;
    ensure!(trade.taker_order_id.as_deref() == Some(answer.order_id.as_str()), "{trade:?}");
    ensure!(trade.trader_side == Some(TraderSide::Maker) && trade.size == decimal("10"), "{trade:?}");
    ensure!(trade.transaction_hash == Some(answer.transaction_hashes[0]), "{trade:?}");
    let leg = &trade.maker_orders[0];
    ensure!(
        (leg.order_id.as_str(), leg.matched_amount, leg.price) == (resting, decimal("10"), decimal("0.4"))
    );
    let last = until(&mut streams.last_trades, |_| true).await?;
    ensure!((last.asset_id, last.price) == (market.no, decimal("0.6")), "{last:?}");
    ensure!((last.size, last.side) == (Some(decimal("10")), Some(Side::Buy)), "{last:?}");
    ensure!(first.client.order(resting).await?.status == OrderStatusType::Matched);
    Ok(id)
}

async fn fill_and_kill_takes_what_there_is(first: &Party, second: &Party, market: &Market) -> Result<String> {
    first.post(market.yes, "0.45", "5").await?;
    let answer = second.spend(market.no, "4.40", OrderType::FAK).await?;
    ensure!(answer.status == OrderStatusType::Matched, "{answer:?}");
    ensure!((answer.making_amount, answer.taking_amount) == (decimal("2.75"), decimal("5")), "{answer:?}");
    ensure!(second.open_orders().await?.is_empty(), "the rest is gone");
    second.trade_of(&answer).await
}

async fn refusals_are_told(first: &Party, market: &Market) -> Result<()> {
    for (size, words) in [("900000", "not enough balance"), ("1", "lower than the minimum")] {
        let refused = first.post(market.yes, "0.50", size).await.err().context("it was taken")?;
        ensure!(format!("{refused:#}").contains(words), "{refused:#} does not say {words}");
    }
    Ok(())
}

async fn trades_are_listed(parties: [&Party; 2], market: &Market, ids: [&str; 2]) -> Result<()> {
    for (party, role) in parties.into_iter().zip([TraderSide::Maker, TraderSide::Taker]) {
        let all = TradesRequest::builder().market(market.condition).build();
        let page = party.client.trades(&all, None).await?;
        ensure!(page.next_cursor == END && page.count == 2);
        ensure!(page.data.iter().map(|trade| trade.id.as_str()).eq([ids[1], ids[0]]), "the newest first");
        ensure!(page.data.iter().all(|trade| trade.trader_side == role));
        let amounts = page.data.iter().map(|trade| (trade.size, trade.price));
        ensure!(
            amounts.eq([("5", "0.55"), ("10", "0.6")].map(|(size, price)| (decimal(size), decimal(price))))
        );
        let one = TradesRequest::builder().id(ids[0]).build();
        let page = party.client.trades(&one, None).await?;
        ensure!(page.data.len() == 1 && page.data[0].transaction_hash != B256::ZERO);
        ensure!(page.data[0].maker_orders[0].matched_amount == decimal("10"));
    }
    let live = parties[0].client.market_trades_events(&market.condition.to_string()).await?;
    let sizes = live.as_array().context("a list")?.iter().map(|event| event["size"].as_str());
    ensure!(sizes.eq([Some("5"), Some("10")]), "{live}");
    Ok(())
}

async fn orders_are_cancelled(first: &Party, market: &Market, streams: &mut Streams) -> Result<()> {
    let mut ids = Vec::new();
    for price in ["0.11", "0.12", "0.13"] {
        ids.push(first.post(market.yes, price, "10").await?.order_id);
    }
    let answer = first.client.cancel_order(&ids[0]).await?;
    ensure!(answer.canceled == ids[..1] && answer.not_canceled.is_empty(), "{answer:?}");
    let heard = until_order(&mut streams.user, OrderMessageType::Cancellation, &ids[0]).await?;
    ensure!((heard.price, heard.size_matched) == (decimal("0.11"), Some(Decimal::ZERO)), "{heard:?}");
    let again = first.client.cancel_order(&ids[0]).await?;
    ensure!(again.not_canceled[&ids[0]].contains("already canceled or matched"), "{again:?}");
    ensure!(sorted(first.client.cancel_all_orders().await?.canceled) == sorted(ids[1..].to_vec()));
    ensure!(first.open_orders().await?.is_empty());
    Ok(())
}

async fn orders_come_in_pages(first: &Party, market: &Market) -> Result<()> {
    let mut ids = Vec::new();
    for start in (0..ORDERS_IN_PAGES).step_by(BATCH_MAX) {
        let mut batch = Vec::new();
        for index in start..ORDERS_IN_PAGES.min(start + BATCH_MAX) {
            batch.push(first.limit(market.yes, &format!("0.0{}", 1 + index % 9), "5").await?);
        }
        ids.extend(first.client.post_orders(batch).await?.into_iter().map(|answer| answer.order_id));
    }
    let all = OrdersRequest::default();
    let page = first.client.orders(&all, None).await?;
    ensure!((page.limit, page.count) == (PAGE, PAGE) && page.next_cursor != END);
    let rest = first.client.orders(&all, Some(page.next_cursor)).await?;
    ensure!((rest.count, rest.next_cursor.as_str()) == (ids.len() as u64 - PAGE, END));
    let listed: Vec<_> = page.data.into_iter().chain(rest.data).map(|order| order.id).collect();
    ensure!(listed.iter().eq(ids.iter().rev()), "the newest first, each once");
    ensure!(sorted(first.client.cancel_all_orders().await?.canceled) == sorted(ids));
    Ok(())
}

async fn what_is_not_run_is_empty(first: &Party, market: &Market) -> Result<()> {
    let client = &first.client;
    let date = NaiveDate::from_ymd_opt(2026, 11, 20).expect("a date");
    ensure!(client.current_rewards(None).await?.next_cursor == END);
    ensure!(client.raw_rewards_for_market(&market.condition.to_string(), None).await?.data.is_empty());
    ensure!(client.earnings_for_user_for_day(date, None).await?.data.is_empty());
    ensure!(client.total_earnings_for_user_for_day(date).await?.is_empty());
    ensure!(client.reward_percentages().await?.is_empty());
    ensure!(client.pre_migration_orders(None).await?.data.is_empty());
    ensure!(client.notifications().await?.is_empty());
    ensure!(client.builder_api_keys().await?.is_empty());
    client.builder_fee_rate(market.condition).await?;
    ensure!(client.builder_trades(market.condition, &TradesRequest::default(), None).await?.data.is_empty());
    let refused = client.create_builder_api_key().await.err().context("a key was made")?;
    ensure!(format!("{refused:#}").contains("builder keys are not supported"), "{refused:#}");
    Ok(())
}
