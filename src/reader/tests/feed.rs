use super::*;
use crate::catalog::LABEL_BYTES_MAX;
use crate::journal::layout::order::FILLS_MAX;
use crate::journal::layout::{MarketMode, TickChanged};
use serde_json::json;

mod accounts;
mod again;

const FIRST: u32 = 0;
const SECOND: u32 = 1;

/// An exchange, and what follows it: beside its reader, and beside a second one for streams alone.
struct Followed {
    exchange: Exchange,
    feed: Feed,
    apart: (Reader, Feed),
}

impl Followed {
    fn opened() -> Self {
        Self::of(Exchange::opened())
    }

    fn of(exchange: Exchange) -> Self {
        let feed = || {
            Feed::new(StreamIds { now: "stream".into(), known: ["stream".into()].into() }, &exchange.reader)
        };
        let apart = (exchange.reader.for_streams(), feed());
        Self { feed: feed(), apart, exchange }
    }

    /// A client follows rain's yes, with all that it may be told.
    fn follow(&mut self, client: u32) {
        let text =
            format!(r#"{{"type":"market","assets_ids":["{RAIN_YES}"],"custom_feature_enabled":true}}"#);
        self.says(client, Channel::Market, &text);
        self.sent();
    }

    /// A client comes and says something; Alice has every key.
    fn says(&mut self, client: u32, channel: Channel, text: &str) {
        self.says_as(ALICE, client, channel, text);
    }

    /// A client comes and says something; somebody has every key.
    fn says_as(&mut self, who: WalletNo, client: u32, channel: Channel, text: &str) {
        self.comes(client, channel);
        self.adds(who, client, text);
        self.gives_books(client);
    }

    /// Rain takes the finest tick.
    fn takes_the_finest_tick(&mut self) {
        let (time, tick) = (self.exchange.time(), Tick::new(1).expect("the finest"));
        self.notes(TickChanged { time, market: RAIN, tick, removed: Vec::new() });
    }

    fn comes(&mut self, client: u32, channel: Channel) {
        for (feed, _) in self.feeds() {
            feed.join(client, channel);
        }
    }

    /// A client gets the books that it is owed.
    fn gives_books(&mut self, client: u32) {
        let now = self.exchange.time();
        for (feed, reader) in self.feeds() {
            while feed.owes_books(client) {
                feed.give_books(client, reader, now);
            }
        }
    }

    /// A client that is there says something.
    fn adds(&mut self, who: WalletNo, client: u32, text: &str) {
        let now = self.exchange.time();
        for (feed, reader) in self.feeds() {
            let heard = feed.hear(client, text, reader, (now, None), |_| Some(caller(who, Dialect::Poly)));
            assert_eq!(heard, Heard::Stays);
        }
    }

    fn feeds(&mut self) -> [(&mut Feed, &Reader); 2] {
        [(&mut self.feed, &self.exchange.reader), (&mut self.apart.1, &self.apart.0)]
    }

    fn sent(&mut self) {
        for (feed, _) in self.feeds() {
            feed.sent();
        }
    }

    fn notes(&mut self, record: impl Into<Record>) -> Position {
        let record = record.into();
        let position = self.exchange.says(record.clone());
        let end = self.exchange.reader.ledger().end();
        self.apart.0.apply(position, end, &record).expect("the record is possible");
        let now = self.exchange.time();
        for (feed, reader) in self.feeds() {
            feed.note(reader, &record, now);
        }
        position
    }

    /// A bid for rain's yes rests.
    fn bids(&mut self, cents: u16) -> Position {
        let order = self.exchange.order(ALICE, Side::Buy, Outcome::Zero, cents, 10);
        self.notes(order)
    }

    /// What everybody is told at the end of a turn, by either feed.
    fn tells(&mut self) -> Vec<(u32, String)> {
        let now = self.exchange.time();
        let [told, apart] = self.feeds().map(|(feed, reader)| {
            feed.flush(reader, now);
            let sends = feed.sends();
            sends.map(|(to, frame)| (to, String::from_utf8_lossy(frame).into_owned())).collect::<Vec<_>>()
        });
        assert_eq!(told, apart, "a feed apart tells the same");
        self.sent();
        told
    }

    /// What a client is told at the end of a turn.
    fn told(&mut self, client: u32) -> Vec<String> {
        self.tells().into_iter().filter(|(to, _)| *to == client).map(|(_, text)| text).collect()
    }

    fn beats(&mut self, client: u32) {
        let now = self.exchange.time();
        for (feed, reader) in self.feeds() {
            feed.beat(client, reader, now);
        }
    }

    fn leaves(&mut self, client: u32) {
        for (feed, _) in self.feeds() {
            feed.leave(client);
        }
    }
}

#[test]
fn who_follows_is_not_told_of_what_was_followed_before() {
    let mut followed = Followed::opened();
    followed.follow(FIRST);
    followed.bids(40);
    assert_eq!(followed.told(FIRST).len(), 2, "the change, and the best price");
    followed.follow(SECOND);
    assert_eq!(followed.told(SECOND), [""; 0]);
}

#[test]
fn who_follows_after_everybody_has_left_in_the_middle_of_a_turn_is_told_of_the_next_best_price() {
    let mut followed = Followed::opened();
    followed.bids(40);
    followed.follow(FIRST);
    followed.bids(45);
    followed.leaves(FIRST);
    assert_eq!(followed.told(FIRST), [""; 0]);
    let best = followed.bids(50);
    followed.follow(SECOND);
    let time = followed.exchange.time();
    followed.notes(OrdersRemoved { time, reason: RemovalReason::Cancelled, orders: vec![best] });
    let told = followed.told(SECOND);
    let bests: Vec<_> = told.iter().filter(|text| text.contains(r#""event_type":"best_bid_ask""#)).collect();
    assert!(bests.len() == 1 && bests[0].contains(r#""best_bid":"0.45""#), "{told:?}");
}

#[test]
fn who_follows_as_many_tokens_as_may_be_may_name_them_again_and_no_other() {
    const MARKETS: u32 = 250;
    let mut followed = Followed::opened();
    for number in 2..=MARKETS {
        let added = followed.exchange.market_added(MarketNo(number), "{}");
        followed.notes(added);
    }
    followed.tells();
    followed.comes(FIRST, Channel::Market);
    for (named, subscriptions, refused) in [
        (0..MARKETS, json!(500), json!(null)),
        (0..MARKETS, json!(500), json!(null)),
        (MARKETS - 1..MARKETS, json!(500), json!(null)),
        (MARKETS..MARKETS + 1, json!(null), json!("502")),
    ] {
        let markets: Vec<String> = named.clone().map(|number| condition_text(MarketNo(number))).collect();
        let asks = json!({ "type": "market", "markets": markets, "initial_dump": false });
        followed.adds(ALICE, FIRST, &asks.to_string());
        let told = object(&followed.told(FIRST)[0]);
        assert_eq!((&told["subscriptions"], &told["got"]), (&subscriptions, &refused), "{named:?}: {told}");
    }
}

#[test]
fn a_feed_apart_tells_an_account_and_followers_the_same() {
    let mut exchange = Exchange::opened();
    exchange.splits(BOB, 10);
    let resting = exchange.rests(ALICE, Side::Buy, Outcome::Zero, 40, 10);
    let mut apart = Followed::of(exchange);
    apart.follow(FIRST);
    apart.says(
        SECOND,
        Channel::User,
        r#"{"type":"user","markets":[],"auth":{"apiKey":"a","secret":"b","passphrase":"c"}}"#,
    );
    assert_eq!(apart.told(SECOND).len(), 1, "the acknowledgement");
    // Another taker meets what rested before the second reader was there.
    let taker = apart.exchange.order(BOB, Side::Sell, Outcome::Zero, 40, 4);
    let taker = apart.exchange.filled(taker, &[(resting, 4)]);
    apart.notes(taker);
    let told = apart.tells();
    for (client, word) in [(FIRST, "last_trade_price"), (SECOND, "MATCHED")] {
        assert!(told.iter().any(|(to, text)| *to == client && text.contains(word)), "{word}: {told:?}");
    }
}

#[test]
fn a_trade_shows_the_taker_every_maker_and_a_maker_its_own_orders() {
    let mut exchange = Exchange::opened();
    exchange.splits(CAROL, 10);
    let makers: Vec<_> = [(BOB, 43), (ALICE, 42), (BOB, 41)]
        .into_iter()
        .map(|(who, cents)| (exchange.rests(who, Side::Buy, Outcome::Zero, cents, 2), 2))
        .collect();
    let mut followed = Followed::of(exchange);
    let followers =
        [(CAROL, ["0.43", "0.42", "0.41"].as_slice()), (BOB, &["0.43", "0.41"]), (ALICE, &["0.42"])];
    for (client, (who, _)) in (0..).zip(&followers) {
        let auth = r#"{"type":"user","auth":{"apiKey":"a","secret":"b","passphrase":"c"}}"#;
        followed.says_as(*who, client, Channel::User, auth);
    }
    followed.sent();
    let taker = followed.exchange.order(CAROL, Side::Sell, Outcome::Zero, 41, 6);
    let taker = followed.exchange.filled(taker, &makers);
    followed.notes(taker);
    let told = followed.tells();
    for (client, (who, prices)) in (0..).zip(followers) {
        let trades = told.iter().filter(|(to, text)| *to == client && text.contains(r#""type":"TRADE""#));
        let shown: Vec<Vec<String>> = trades
            .map(|(_, frame)| {
                let trade = object(frame);
                let makers = trade["maker_orders"].as_array().expect("a list");
                makers.iter().map(|maker| maker["price"].as_str().expect("a text").to_owned()).collect()
            })
            .collect();
        assert_eq!(shown, [prices, prices], "MATCHED and CONFIRMED, to {who:?}");
    }
}

#[test]
fn a_trade_with_the_most_makers_is_a_message_that_clients_take() {
    let mut exchange = Exchange::opened();
    let makers: Vec<_> = (0..FILLS_MAX)
        .map(|number| (exchange.rests([ALICE, BOB][number % 2], Side::Buy, Outcome::Zero, 90, 1), 1))
        .collect();
    let mut followed = Followed::of(exchange);
    let auth = r#"{"type":"user","auth":{"apiKey":"a","secret":"b","passphrase":"c"}}"#;
    followed.says_as(CAROL, FIRST, Channel::User, auth);
    followed.sent();
    let taker = followed.exchange.order(CAROL, Side::Buy, Outcome::One, 10, FILLS_MAX as u64);
    let taker = followed.exchange.filled(taker, &makers);
    followed.notes(taker);
    let told = followed.told(FIRST);
    let trades: Vec<_> = told.iter().filter(|frame| frame.contains(r#""type":"TRADE""#)).collect();
    assert_eq!(trades.len(), 2, "MATCHED and CONFIRMED");
    // Of a maker: tokens have 78 digits, and the largest order is 13 of an amount for each of so many.
    let longest =
        [("asset_id", 78), ("outcome", LABEL_BYTES_MAX), ("matched_amount", 13), ("fee_rate_bps", 4)];
    for frame in trades {
        let trade = object(frame);
        let makers = trade["maker_orders"].as_array().expect("a list");
        assert_eq!(makers.len(), FILLS_MAX);
        let shorter: usize = longest
            .iter()
            .map(|(name, longest)| longest - makers[0][*name].as_str().map_or(1, str::len))
            .sum();
        assert!(frame.len() + shorter * FILLS_MAX <= 1 << 20, "{} bytes and {shorter} each", frame.len());
    }
}

/// All bids but the first leave at once, at prices of their own, and one comes after them.
#[test]
fn what_changes_thousands_of_prices_is_told_as_whole_books() {
    for (leaving, is_whole) in [(5, false), (2_001, true)] {
        let mut followed = Followed::opened();
        followed.takes_the_finest_tick();
        let bids: Vec<_> = (0..=leaving)
            .map(|price| {
                let bid = followed.exchange.order(ALICE, Side::Buy, Outcome::Zero, 50, 1);
                followed.notes(OrderPlaced { price: Price::new(1 + price).expect("a price"), ..bid })
            })
            .collect();
        followed.follow(FIRST);
        let time = followed.exchange.time();
        let orders = bids[1..].to_vec();
        followed.notes(OrdersRemoved { time, reason: RemovalReason::Cancelled, orders });
        followed.bids(60);
        let told: Vec<Value> = followed.told(FIRST).iter().map(|frame| object(frame)).collect();
        let kinds: Vec<_> = told.iter().map(|told| told["event_type"].as_str().expect("a text")).collect();
        let expected: &[&str] = if is_whole {
            &["book", "best_bid_ask"]
        } else {
            &["price_change", "price_change", "best_bid_ask"]
        };
        assert_eq!(kinds, expected, "{leaving}");
        assert_eq!(told[kinds.len() - 2]["sequence"], json!(leaving + 3), "as of the last change");
        // A client that comes back is not told of such a change either.
        let asks = json!({
            "type": "market", "assets_ids": [RAIN_YES.to_string()], "from": leaving + 1, "stream_id": "stream",
        });
        followed.says(SECOND, Channel::Market, &asks.to_string());
        let told: Vec<Value> = followed.told(SECOND).iter().map(|frame| object(frame)).collect();
        assert_eq!(told[0]["markets"][0]["replayed"], !is_whole, "{}", told[0]);
        let then = if is_whole { "book" } else { "price_change" };
        assert!(told[1..].iter().all(|told| told["event_type"] == then), "{then}");
    }
}

/// A book with so many levels that nobody is made to wait for its text at each change.
#[test]
fn a_deep_book_is_told_by_its_changes_alone_and_without_hashes() {
    for (levels, is_deep) in [(1_000, false), (1_001, true)] {
        let mut followed = Followed::opened();
        followed.takes_the_finest_tick();
        let asks: Vec<_> = (0..levels)
            .map(|above| {
                let ask = followed.exchange.order(ALICE, Side::Buy, Outcome::One, 50, 5);
                followed.notes(OrderPlaced { price: Price::new(5_000 - above).expect("a price"), ..ask })
            })
            .collect();
        followed.follow(FIRST);
        let buy = followed.exchange.order(BOB, Side::Buy, Outcome::Zero, 50, 2);
        let taker = followed.exchange.filled(buy, &[(asks[0], 2)]);
        followed.notes(taker);
        let told: Vec<Value> = followed.told(FIRST).iter().map(|frame| object(frame)).collect();
        let kinds: Vec<_> = told.iter().map(|told| told["event_type"].as_str().expect("a text")).collect();
        let expected: &[&str] = &["price_change", "last_trade_price", "book"][..if is_deep { 2 } else { 3 }];
        assert_eq!(kinds, expected, "{levels}");
        let change = &told[0]["price_changes"][0];
        assert_eq!((&change["price"], &change["size"]), (&json!("0.5"), &json!("3")));
        let hash = change["hash"].as_str().expect("a text");
        if is_deep {
            assert_eq!(hash, "");
        } else {
            assert_eq!(hash, told[2]["hash"]);
        }
    }
}

/// The object in a frame.
fn object(frame: &str) -> Value {
    serde_json::from_str(&frame[frame.find('{').expect("an object")..]).expect("an object")
}

#[test]
fn a_replay_is_as_long_as_one_message_may_take_or_none() {
    const MAKERS: usize = 4_096;
    let mut exchange = Exchange::opened();
    let (time, wallet, direction) = (exchange.time(), ALICE, MoneyDirection::Credit);
    let amount = Collateral(3 * MAKERS as u64 * SHARE);
    exchange.says(Money { time, wallet, direction, amount, reference: "more".to_owned() });
    exchange.splits(ALICE, 3 * MAKERS as u64);
    let resting = exchange.rests(BOB, Side::Buy, Outcome::Zero, 1, 3 * MAKERS as u64);
    let mut followed = Followed::of(exchange);
    for _ in 0..3 {
        let taker = followed.exchange.order(ALICE, Side::Sell, Outcome::Zero, 1, MAKERS as u64);
        let taker = followed.exchange.filled(taker, &vec![(resting, 1); MAKERS]);
        followed.notes(taker);
    }
    followed.sent();
    // Three events each: the order, and its trade twice.
    for (client, from, replayed) in [(FIRST, 3, 6), (SECOND, 0, 0)] {
        let auth = r#""auth":{"apiKey":"a","secret":"b","passphrase":"c"}"#;
        let text = format!(r#"{{"type":"user",{auth},"from":{from},"stream_id":"stream"}}"#);
        followed.says(client, Channel::User, &text);
        let told = followed.told(client);
        assert!(told[0].contains(&format!(r#""replayed":{}"#, 0 < replayed)), "{}", told[0]);
        assert_eq!(told.len(), 1 + replayed, "from {from}");
    }
}

/// What happens between a subscription to both tokens of a market and its first books.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    Bid,
    Says(&'static str),
    Books,
    Beat,
    /// The tick becomes finer.
    Ticks,
    /// The market closes.
    Closes,
}

#[test]
fn a_market_that_is_followed_is_told_from_its_first_books_on() {
    use Meanwhile::{Beat, Bid, Books, Closes, Says, Ticks};
    const LEAVES_YES: &str = r#"{"assets_ids":["YES"],"operation":"unsubscribe"}"#;
    const LEAVES: &str = r#"{"assets_ids":["YES","NO"],"operation":"unsubscribe"}"#;
    const GOES_ON: &str = r#"{"assets_ids":["YES","NO"],"from":0,"stream_id":"stream"}"#;
    const ONE: &str = r#"{"assets_ids":["YES"]}"#;
    const AGAIN: &str = r#"{"assets_ids":["YES","NO"]}"#;
    const WITHOUT: &str = r#"{"assets_ids":["YES","NO"],"initial_dump":false}"#;
    let both = |told: &'static str| vec![told, told];
    for (meanwhile, told) in [
        (vec![Books, Bid], [vec!["subscribed"], both("book 0"), vec!["price_change 1"]].concat()),
        (
            vec![Bid, Beat, Books, Beat],
            [vec!["subscribed", "heartbeat"], both("book 1"), vec!["heartbeat 1"]].concat(),
        ),
        (vec![Bid, Bid, Books, Bid], [vec!["subscribed"], both("book 2"), vec!["price_change 3"]].concat()),
        (
            vec![Bid, Says(LEAVES_YES), Books, Bid],
            vec!["subscribed", "unsubscribed", "book 1", "price_change 2"],
        ),
        (vec![Bid, Says(LEAVES), Books, Bid, Beat], vec!["subscribed", "unsubscribed", "heartbeat"]),
        (
            vec![Bid, Says(LEAVES), Says(AGAIN), Bid, Books],
            [vec!["subscribed", "unsubscribed", "subscribed"], both("book 2")].concat(),
        ),
        (
            vec![Bid, Says(GOES_ON), Books, Bid],
            vec!["subscribed", "subscribed", "price_change 1", "price_change 2"],
        ),
        (vec![Bid, Says(WITHOUT), Bid, Books], [vec!["subscribed", "subscribed"], both("book 2")].concat()),
        // Who is told already goes on being told.
        (
            vec![Books, Says(AGAIN), Bid, Beat, Books],
            [
                vec!["subscribed"],
                both("book 0"),
                vec!["subscribed", "price_change 1", "heartbeat 1"],
                both("book 1"),
            ]
            .concat(),
        ),
        // Who is told of one token and owed the other's book is told of changes, which are of both.
        (
            vec![Says(LEAVES), Says(ONE), Books, Says(AGAIN), Bid, Books],
            [
                vec!["subscribed", "unsubscribed", "subscribed", "book 0", "subscribed", "price_change 1"],
                both("book 1"),
            ]
            .concat(),
        ),
        // A book has the tick, but not the mode.
        (vec![Bid, Ticks, Closes, Books], [vec!["subscribed", "mode 1"], both("book 1")].concat()),
        (
            vec![Books, Ticks, Closes],
            [vec!["subscribed"], both("book 0"), both("tick_size_change 0"), both("book 0"), vec!["mode 0"]]
                .concat(),
        ),
    ] {
        let mut followed = Followed::opened();
        let mut all = Vec::new();
        followed.comes(FIRST, Channel::Market);
        for step in [vec![Says(AGAIN)], meanwhile.clone()].concat() {
            match step {
                Bid => drop(followed.bids(40)),
                Says(text) => {
                    let text = text.replace("YES", RAIN_YES).replace("NO", RAIN_NO);
                    followed.adds(ALICE, FIRST, &text);
                }
                Books => followed.gives_books(FIRST),
                Beat => followed.beats(FIRST),
                Ticks => {
                    let (time, tick) = (followed.exchange.time(), Tick::new(1).expect("the finest"));
                    followed.notes(TickChanged { time, market: RAIN, tick, removed: Vec::new() });
                }
                Closes => {
                    let time = followed.exchange.time();
                    followed.notes(MarketMode { time, market: RAIN, mode: Mode::Closed });
                }
            }
            all.extend(followed.told(FIRST).iter().map(|frame| shown(&object(frame))));
        }
        assert_eq!(all, told, "{meanwhile:?}");
    }
}

/// What a message is and, if it has one, its number.
fn shown(message: &Value) -> String {
    let kind = message["event_type"].as_str().or_else(|| message["type"].as_str()).expect("a kind");
    let number = match kind {
        "heartbeat" => message["markets"][0]["sequence"].as_u64(),
        _ => message["sequence"].as_u64(),
    };
    number.map_or_else(|| kind.to_owned(), |number| format!("{kind} {number}"))
}
