//! The market channel: following tokens, and what each record sends to their followers.
//!
//! A change of a book is one message for both tokens of its market, since a level of one is a mirrored
//! level of the other. Its hashes, which are of the whole book, are filled in at the end of the turn, unless the
//! book is deep ([`LEVELS_HASHED_MAX`]); its checksums are of the levels right after its own record.

use super::super::ask::Refused;
use super::super::books::{Bests, HASH_BYTES, shown_bests};
use super::super::levels::{Levels, seen_from};
use super::super::trades::base_fee;
use super::super::{Reader, Token};
use super::ask::{self, Ask, Operation, SUBSCRIPTIONS_MAX, Since};
use super::listing::write_payout;
use super::recent::{BookChange, LevelChange};
use super::{Channel, Feed, Subscriber, checksum, crc, tokens_of, write_stamp, write_unknown};
use crate::domain::{MarketNo, Outcome, Price, Shares, Side, TimeMs};
use crate::journal::layout::{OrderPlaced, TickChanged};
use crate::json::Writer;
use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(super) const OUTCOMES: [Outcome; 2] = [Outcome::Zero, Outcome::One];

/// Changes that one message may have replayed. A client that missed more gets fresh books.
const REPLAYED_MAX: usize = 1_000;

/// Levels in those changes. Most change one or two, a replace of many orders up to thirty.
const REPLAYED_LEVELS_MAX: usize = 4 * REPLAYED_MAX;

/// What clients take of one message: Python's `websockets` a MiB, unless it is told otherwise.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Levels of a change that is told level by level. What changes more at once, as a result or a coarser tick may, is told
/// as whole books: with half a kilobyte a level, more would not fit into [`MESSAGE_BYTES_MAX`].
const LEVELS_TOLD_MAX: usize = 2_000;

/// Levels of a book up to which a change tells its hash, and a trade the whole book. Both take as long as the book, at
/// each change and for each token, for all who wait behind it. With a tick of 0.001 no book has more.
const LEVELS_HASHED_MAX: usize = 1_000;

/// What a flush tells of a book that changed, besides its changes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changed {
    /// It tells the whole book, as after a trade.
    whole: bool,
    /// That stands for some changes, so those that follow are not told by themselves either.
    for_changes: bool,
}

/// Whom a message is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Audience {
    /// The followers of any token of a market, though they may not have its book yet.
    Followers(MarketNo),
    /// Those who are told of any token of a market.
    OfBook(MarketNo),
    /// Those who are told of this token.
    OfToken(Token),
    /// Those who are told of this token and not of the other one of its market.
    OnlyOf(Token),
    /// The followers of a market that asked for more than the venue's own messages.
    Curious(MarketNo),
    /// The clients that asked for more, whatever they follow.
    AllCurious,
    /// Every client.
    Everybody,
}

/// A message that waits for its hashes, and for the messages before it.
#[derive(Debug)]
pub(super) struct Pending {
    audience: Audience,
    payload: Vec<u8>,
    /// Where the hashes of these tokens go in the payload.
    hashes: Vec<(usize, Token)>,
}

/// The book right after a change.
#[derive(Clone, Copy)]
struct BookAfter<'a> {
    levels: &'a Levels,
    /// The checksums of both tokens.
    crcs: [u32; 2],
    /// Whether its hash is told.
    is_hashed: bool,
}

impl Feed {
    /// Follows or leaves what a message names, and answers it.
    pub(super) fn follow_markets(
        &mut self,
        client: u32,
        ask: &Ask<'_>,
        reader: &Reader,
        now: TimeMs,
    ) -> Result<(), Refused> {
        let named = named(reader, ask);
        let Some(Some(Subscriber::Market { tokens, owed, custom })) =
            self.subscribers.get_mut(client as usize)
        else {
            return Ok(());
        };
        if ask.operation == Operation::Unsubscribe {
            *custom = ask.custom.unwrap_or(*custom);
            tokens.retain(|token| !named.tokens.contains(token));
            owed.retain(|token| !named.tokens.contains(token));
            for market in named.markets() {
                self.follow(client, market, reader);
            }
            self.answer(client, reader, "unsubscribed", &named, &BTreeSet::new(), now);
            return Ok(());
        }
        let count = tokens.union(&named.tokens).count();
        if SUBSCRIPTIONS_MAX < count {
            return Err(ask::too_many(Channel::Market, &ask.tokens, count));
        }
        let markets = named.markets();
        let since = since(reader, ask, &markets)?;
        let same_stream = ask.stream_id.is_none_or(|id| self.ids.know(id));
        let since = if same_stream { since } else { BTreeMap::new() };
        let replays = replays(reader, since, &markets);
        let replayed = replays.keys().copied().collect();
        tokens.extend(&named.tokens);
        *custom = ask.custom.unwrap_or(*custom);
        for token in &named.tokens {
            if replays.contains_key(&token.market) {
                owed.remove(token);
            } else if ask.dump {
                owed.insert(*token);
            }
        }
        for &market in &markets {
            self.follow(client, market, reader);
        }
        self.answer(client, reader, "subscribed", &named, &replayed, now);
        for (market, changes) in &replays {
            self.replay(client, reader, *market, changes, now);
        }
        Ok(())
    }

    /// Notes what a record did to a book, right after that record.
    pub(super) fn note_change(&mut self, reader: &Reader, change: &BookChange, now: TimeMs) {
        let levels = &reader.index.market(change.market).levels;
        let crcs = self.crcs.get_mut(&change.market).expect("somebody was told of the market");
        checksum::follow(crcs, &change.levels);
        debug_assert_eq!(*crcs, checksum::crcs(levels), "a change names every level that it changes");
        let changed = self.changed.entry(change.market).or_default();
        if LEVELS_TOLD_MAX < change.levels.len() {
            *changed = Changed { whole: true, for_changes: true };
        }
        if changed.for_changes {
            return;
        }
        let after = BookAfter { levels, crcs: *crcs, is_hashed: levels.count() <= LEVELS_HASHED_MAX };
        let mut payload = Vec::new();
        let hashes = write_change(&mut payload, reader, change, after, &self.ids.now, now);
        debug_assert!(payload.len() < MESSAGE_BYTES_MAX, "{} bytes", payload.len());
        self.pending.push(Pending { audience: Audience::OfBook(change.market), payload, hashes });
    }

    /// Announces the fills of a taker: one message for each price, in the order of the fills. A client that
    /// follows only the other token gets the same trade in that token's terms; nobody gets it twice.
    pub(super) fn push_trades(&mut self, reader: &Reader, record: &OrderPlaced, now: TimeMs) {
        if record.fills.is_empty() || !self.crcs.contains_key(&record.market) {
            return;
        }
        let levels = &reader.index.market(record.market).levels;
        self.changed.entry(record.market).or_default().whole |= levels.count() <= LEVELS_HASHED_MAX;
        let row = reader.market(record.market);
        let taker = reader.ledger.find(&record.id).ok().flatten();
        let taker = taker.expect("the ledger applied this order");
        let settlement = reader.settlement_hash(taker.position);
        let mut fills: Vec<(Price, Shares)> = Vec::new();
        for fill in &record.fills {
            let maker = reader.ledger.order_at(fill.maker).expect("the ledger applied this fill");
            let same = maker.outcome == record.outcome;
            let price = if same { fill.price } else { fill.price.complement() };
            match fills.last_mut().filter(|last| last.0 == price) {
                Some(last) => last.1 += fill.shares,
                None => fills.push((price, fill.shares)),
            }
        }
        let (taken, other) = (record.outcome, record.outcome.other());
        for (price, shares) in fills {
            let side = record.fields.side;
            for (outcome, price, side) in [(taken, price, side), (other, price.complement(), side.opposite())]
            {
                let mut payload = Vec::new();
                let json = &mut Writer::new(&mut payload);
                json.open_object().key("event_type").text("last_trade_price");
                json.key("market").condition(&row.condition);
                json.key("asset_id").token(&row.tokens[outcome.index()]);
                json.key("price").price_text(price).key("size").millionths_text(shares.0);
                json.key("side").text(side.text());
                json.key("fee_rate_bps").number_text(base_fee(row.fee.rate));
                json.key("timestamp").number_text(record.time.0);
                json.key("transaction_hash").hex(settlement.as_bytes());
                self.stamp(json, reader, record.market, now);
                json.close_object();
                let token = Token { market: record.market, outcome };
                let audience =
                    if outcome == taken { Audience::OfToken(token) } else { Audience::OnlyOf(token) };
                self.pend(audience, payload);
            }
        }
    }

    /// Announces a new tick; a book follows, because levels may have been removed.
    pub(super) fn push_tick(&mut self, reader: &Reader, record: &TickChanged, now: TimeMs) {
        if !self.crcs.contains_key(&record.market) {
            return;
        }
        let row = reader.market(record.market);
        let old = reader.former_tick.unwrap_or(record.tick);
        for outcome in OUTCOMES {
            let mut payload = Vec::new();
            let json = &mut Writer::new(&mut payload);
            json.open_object().key("event_type").text("tick_size_change");
            json.key("market").condition(&row.condition).key("asset_id").token(&row.tokens[outcome.index()]);
            json.key("old_tick_size").ten_thousandths_text(old.ten_thousandths());
            json.key("new_tick_size").ten_thousandths_text(record.tick.ten_thousandths());
            json.key("timestamp").number_text(record.time.0);
            self.stamp(json, reader, record.market, now);
            json.close_object();
            self.pend(Audience::OfToken(Token { market: record.market, outcome }), payload);
        }
        self.changed.entry(record.market).or_default().whole = true;
    }

    /// Fills in the hashes and makes frames.
    pub(super) fn seal_pending(&mut self, reader: &Reader) {
        let mut hashes: HashMap<Token, [u8; HASH_BYTES]> = HashMap::new();
        for mut pending in std::mem::take(&mut self.pending) {
            for (at, token) in &pending.hashes {
                let hash = hashes.entry(*token).or_insert_with(|| reader.book_hash(*token));
                pending.payload[*at..at + HASH_BYTES].copy_from_slice(hash);
            }
            let clients = self.clients_of(pending.audience);
            self.out.tell(clients, |out| out.extend_from_slice(&pending.payload));
        }
    }

    fn clients_of(&self, audience: Audience) -> Vec<u32> {
        let everybody = || {
            let all = (0..).zip(&self.subscribers);
            all.filter(|(_, subscriber)| subscriber.is_some()).map(|(client, _)| client)
        };
        let followers =
            |market| self.followers.get(&market).into_iter().flatten().map(|(client, of)| (*client, *of));
        match audience {
            Audience::Followers(market) => followers(market).map(|(client, _)| client).collect(),
            Audience::OfBook(market) => {
                followers(market).filter(|(_, of)| *of != [false; 2]).map(|(client, _)| client).collect()
            }
            Audience::OfToken(token) => {
                let of_token = followers(token.market).filter(|(_, of)| of[token.outcome.index()]);
                of_token.map(|(client, _)| client).collect()
            }
            Audience::OnlyOf(token) => {
                let (this, other) = (token.outcome.index(), token.outcome.other().index());
                let only = followers(token.market).filter(|(_, of)| of[this] && !of[other]);
                only.map(|(client, _)| client).collect()
            }
            Audience::Curious(market) => {
                let clients = followers(market).map(|(client, _)| client);
                clients.filter(|client| self.is_curious(*client)).collect()
            }
            Audience::AllCurious => everybody().filter(|client| self.is_curious(*client)).collect(),
            Audience::Everybody => everybody().collect(),
        }
    }

    /// Sends whole books where they are to be told, and best prices that have changed.
    pub(super) fn push_books(&mut self, reader: &Reader, market: MarketNo, changed: Changed, now: TimeMs) {
        for token in tokens_of(market) {
            let best = reader.bests(token);
            let moved = self.best.insert(token, best) != Some(best);
            if !changed.whole && !moved {
                continue;
            }
            let clients = self.clients_of(Audience::OfToken(token));
            let stream_id = &self.ids.now;
            if changed.whole {
                self.out.tell(clients.iter().copied(), |out| write_book(out, reader, token, stream_id, now));
            }
            if !moved {
                continue;
            }
            let curious: Vec<u32> = clients.into_iter().filter(|client| self.is_curious(*client)).collect();
            self.out.tell(curious, |out| {
                let row = reader.market(market);
                let json = &mut Writer::new(out);
                json.open_object().key("event_type").text("best_bid_ask");
                json.key("market").condition(&row.condition);
                json.key("asset_id").token(&row.tokens[token.outcome.index()]);
                write_best(json, best);
                let [bid, ask] = shown_bests(best);
                json.key("spread").ten_thousandths_text(ask.saturating_sub(bid));
                json.key("timestamp").number_text(row.book_changed.0);
                json.key("sequence").number(reader.index.market(market).sequence);
                write_stamp(json, stream_id, now);
                json.close_object();
            });
        }
    }

    /// Answers a message. For markets that are `replayed` the client goes on where it was.
    fn answer(
        &mut self,
        client: u32,
        reader: &Reader,
        word: &'static str,
        named: &Named<'_>,
        replayed: &BTreeSet<MarketNo>,
        now: TimeMs,
    ) {
        let Some(Some(Subscriber::Market { tokens, .. })) = self.subscribers.get(client as usize) else {
            return;
        };
        let (count, stream_id) = (tokens.len(), &self.ids.now);
        self.out.tell([client], |out| {
            let json = &mut Writer::new(out);
            json.open_object().key("type").text(word).key("channel").text("market");
            json.key("markets").open_array();
            write_markets(json, reader, &named.tokens, replayed);
            json.close_array().key("refused").open_array();
            write_unknown(json, &named.unknown);
            json.close_array().key("subscriptions").number(count as u64);
            json.key("subscriptions_max").number(SUBSCRIPTIONS_MAX as u64);
            json.key("mode").text(reader.ledger.exchange_mode().text());
            write_stamp(json, stream_id, now);
            json.close_object();
        });
    }

    /// Sends the changes that a client has missed, each with the book as it was right after it.
    fn replay(
        &mut self,
        client: u32,
        reader: &Reader,
        market: MarketNo,
        changes: &[&BookChange],
        now: TimeMs,
    ) {
        let mut levels = reader.index.market(market).levels.clone();
        let mut crcs = self.crcs[&market];
        for change in changes.iter().rev() {
            for LevelChange { side, price, before, .. } in &change.levels {
                levels.set(*side, *price, *before);
            }
            checksum::go_back(&mut crcs, &change.levels);
        }
        for change in changes {
            checksum::follow(&mut crcs, &change.levels);
            for LevelChange { side, price, now, .. } in &change.levels {
                levels.set(*side, *price, *now);
            }
            // Only that of the book as it is now is known.
            let after = BookAfter { levels: &levels, crcs, is_hashed: false };
            self.out.tell([client], |out| {
                write_change(out, reader, change, after, &self.ids.now, now);
            });
        }
    }

    pub(super) fn pend(&mut self, audience: Audience, payload: Vec<u8>) {
        self.pending.push(Pending { audience, payload, hashes: Vec::new() });
    }

    pub(super) fn stamp(&self, json: &mut Writer<'_>, reader: &Reader, market: MarketNo, now: TimeMs) {
        json.key("sequence").number(reader.index.market(market).sequence);
        write_stamp(json, &self.ids.now, now);
    }

    fn is_curious(&self, client: u32) -> bool {
        matches!(self.subscribers.get(client as usize), Some(Some(Subscriber::Market { custom: true, .. })))
    }
}

/// What a message names.
struct Named<'a> {
    /// The tokens that are known here. A market stands for both of its own.
    tokens: BTreeSet<Token>,
    /// What is unknown here, and the field that named it.
    unknown: Vec<(&'static str, &'a str)>,
}

impl Named<'_> {
    fn markets(&self) -> BTreeSet<MarketNo> {
        self.tokens.iter().map(|token| token.market).collect()
    }
}

fn named<'a>(reader: &Reader, ask: &Ask<'a>) -> Named<'a> {
    let (mut tokens, mut unknown) = (BTreeSet::new(), Vec::new());
    for (text, id) in &ask.tokens {
        match id.and_then(|id| reader.index.token(&id)) {
            Some(token) => drop(tokens.insert(token)),
            None => unknown.push(("assets_ids", *text)),
        }
    }
    for (text, id) in &ask.markets {
        match id.and_then(|id| reader.index.condition(&id)) {
            Some(market) => tokens.extend(tokens_of(market)),
            None => unknown.push(("markets", *text)),
        }
    }
    Named { tokens, unknown }
}

/// The changes of those of some markets that can go on from where a client was.
fn replays<'a>(
    reader: &'a Reader,
    mut since: BTreeMap<MarketNo, u64>,
    markets: &BTreeSet<MarketNo>,
) -> BTreeMap<MarketNo, Vec<&'a BookChange>> {
    // What cannot be replayed is not looked for.
    since.retain(|market, since| {
        let missed = reader.index.market(*market).sequence.checked_sub(*since);
        markets.contains(market) && missed.is_some_and(|missed| missed <= REPLAYED_MAX as u64)
    });
    let (mut left, mut levels_left) = (REPLAYED_MAX, REPLAYED_LEVELS_MAX);
    let mut replays = reader.recent.changes_since(&since, |market| reader.index.market(market).sequence);
    replays.retain(|market, changes| {
        let missed = reader.index.market(*market).sequence.checked_sub(since[market]);
        let all_there = missed == Some(changes.len() as u64);
        let levels: usize = changes.iter().map(|change| change.levels.len()).sum();
        let by_levels = changes.iter().all(|change| change.levels.len() <= LEVELS_TOLD_MAX);
        let is_told = all_there && by_levels && changes.len() <= left && levels <= levels_left;
        if is_told {
            (left, levels_left) = (left - changes.len(), levels_left - levels);
        }
        is_told
    });
    replays
}

/// The number from which a client goes on, market by market.
fn since(
    reader: &Reader,
    ask: &Ask<'_>,
    markets: &BTreeSet<MarketNo>,
) -> Result<BTreeMap<MarketNo, u64>, Refused> {
    match &ask.from {
        None => Ok(BTreeMap::new()),
        Some(Since::Number(number)) if markets.len() == 1 => {
            Ok(markets.iter().map(|market| (*market, *number)).collect())
        }
        Some(Since::Number(number)) => {
            let refused = Refused::new(400, "invalid_message", "");
            let allowed = "a sequence where one market is named, else an object of sequences by condition id";
            Err(refused.about("from", &number.to_string(), allowed))
        }
        Some(Since::Numbers(numbers)) => {
            let known = |(id, number): &(_, u64)| Some((reader.index.condition(id)?, *number));
            Ok(numbers.iter().filter_map(known).collect())
        }
    }
}

/// Writes what one record did to the levels of both tokens; returns where which hashes go.
fn write_change(
    out: &mut Vec<u8>,
    reader: &Reader,
    change: &BookChange,
    after: BookAfter<'_>,
    stream_id: &str,
    now: TimeMs,
) -> Vec<(usize, Token)> {
    let row = reader.market(change.market);
    let start = out.len();
    let mut hashes = Vec::new();
    let json = &mut Writer::new(out);
    json.open_object().key("event_type").text("price_change");
    json.key("market").condition(&row.condition).key("timestamp").number_text(change.time.0);
    let seen = OUTCOMES.map(|outcome| {
        let best = [Side::Buy, Side::Sell].map(|side| after.levels.best(outcome, side));
        (outcome, best, after.crcs[outcome.index()])
    });
    json.key("price_changes").open_array();
    for level in &change.levels {
        for (outcome, best, crc) in seen {
            let side = level.side.seen_from(outcome);
            json.open_object().key("asset_id").token(&row.tokens[outcome.index()]);
            json.key("price").price_text(seen_from(outcome, level.price));
            json.key("size").millionths_text(level.now.0).key("side").text(side.text()).key("hash");
            if after.is_hashed {
                json.quoted(|out| {
                    hashes.push((out.len() - start, Token { market: change.market, outcome }));
                    out.extend_from_slice(&[b'0'; HASH_BYTES]);
                });
            } else {
                json.text("");
            }
            write_best(json, best);
            json.key("crc").number(crc.into()).close_object();
        }
    }
    json.close_array().key("sequence").number(change.sequence);
    write_stamp(json, stream_id, now);
    json.close_object();
    hashes
}

/// `best_bid` and `best_ask`.
fn write_best(json: &mut Writer<'_>, best: Bests) {
    let [bid, ask] = shown_bests(best);
    json.key("best_bid").ten_thousandths_text(bid).key("best_ask").ten_thousandths_text(ask);
}

/// A whole book: what GET /book returns, and its place in the stream.
pub(super) fn write_book(out: &mut Vec<u8>, reader: &Reader, token: Token, stream_id: &str, now: TimeMs) {
    let index = reader.index.market(token.market);
    let json = &mut Writer::new(out);
    json.open_object().key("event_type").text("book");
    reader.write_book_fields(json, token);
    json.key("crc").number(crc(&index.levels, token.outcome).into());
    json.key("sequence").number(index.sequence);
    write_stamp(json, stream_id, now);
    json.close_object();
}

/// An object for each market of `tokens`: its tokens among them, how far it has come, whether the client
/// goes on from where it was, and the market's present state, because a replay holds only changes of books.
fn write_markets(
    json: &mut Writer<'_>,
    reader: &Reader,
    tokens: &BTreeSet<Token>,
    replayed: &BTreeSet<MarketNo>,
) {
    let mut tokens = tokens.iter().peekable();
    while let Some(token) = tokens.next() {
        let row = reader.market(token.market);
        let other = tokens.next_if(|other| other.market == token.market);
        let outcomes = std::iter::once(token).chain(other).map(|token| token.outcome);
        json.open_object().key("market").condition(&row.condition).key("assets_ids").open_array();
        for outcome in outcomes.clone() {
            json.token(&row.tokens[outcome.index()]);
        }
        json.close_array().key("sequence").number(reader.index.market(token.market).sequence);
        json.key("replayed").boolean(replayed.contains(&token.market));
        json.key("mode").text(row.mode.text());
        json.key("tick_size").ten_thousandths_text(row.tick.ten_thousandths());
        write_payout(json, row, outcomes);
        json.close_object();
    }
}
